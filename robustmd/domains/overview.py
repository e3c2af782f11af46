"""What there is to know of a data set at a glance: a row for every domain, plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robustmd.domains.domain import SPLITS, Domain, DomainSet


@dataclass(frozen=True)
class Row:
    """One domain. examples: of the splits that there are, in order, as the model counts them (with
    variants); stored: images behind them; classes: that it has examples of; bytes: of the prepared
    arrays, pixels and labels, in all of its splits; folder: of its prepared store, None in memory.
    """

    domain: str
    examples: dict[str, int]
    stored: dict[str, int]
    classes: int
    bytes: int
    source: str
    licence: str
    verified: str
    folder: Path | None


def rows(data: DomainSet) -> list[Row]:
    """Of every domain, in order."""
    masks = data.class_masks()
    return [_row(domain, int(mask.sum())) for domain, mask in zip(data, masks, strict=True)]


def _row(domain: Domain, classes: int) -> Row:
    splits = {name: e for name in SPLITS if (e := domain.split(name)) is not None}
    return Row(
        domain.name,
        {name: len(examples) for name, examples in splits.items()},
        {name: examples.stored for name, examples in splits.items()},
        classes,
        bytes_of(_arrays([domain])),
        domain.source,
        domain.licence,
        domain.verified or "not checked",
        _folder(domain.train.images),
    )


def total_bytes(data: DomainSet) -> int:
    """Of the prepared arrays of all domains; what several share counts once."""
    return bytes_of(_arrays(data))


def bytes_of(arrays: Iterable[np.ndarray]) -> int:
    """Bytes of arrays, of which the same one may be there several times."""
    at = {(a.__array_interface__["data"][0], a.nbytes) for a in arrays}
    return sum(size for _, size in at)


def _arrays(domains: Iterable[Domain]) -> list[np.ndarray]:
    found = [e for domain in domains for name in SPLITS if (e := domain.split(name)) is not None]
    return [array for e in found for array in (e.images, e.labels)]


def _folder(array: np.ndarray) -> Path | None:
    """The folder of the file that an array is a memory map of."""
    base: object = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    filename = getattr(base, "filename", None)
    return Path(filename).parent if filename else None
