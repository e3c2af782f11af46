"""What there is to know of a data set at a glance: what is at hand of a known one, without reading
any of it, and a row for every domain of a loaded one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robustmd.domains import digits, imagenet, oxford_pets
from robustmd.domains.domain import CC_BY_4, CC_BY_SA_4, FONTS, Domain, DomainSet

DIGITS_BYTES = 257_910_900  # MNIST, and SVHN without its extra digits
PETS_BYTES = 811_092_049  # Oxford-IIIT Pet; ImageNet is not fetched


@dataclass(frozen=True)
class Entry:
    """licence: one line; size: bytes of what is fetched, 0 for nothing; state: whether it is there,
    in a few words."""

    licence: str
    size: int
    state: str


def entry(name: str, data_dir: Path) -> Entry | None:
    """Of the data set of that name, as it lies below `data_dir`; None for one that is made of
    another or of a user's own files. Raises UserError for a folder that cannot be read."""
    look = _LOOK.get(name)
    return look(data_dir) if look else None


def _digits_mini(_: Path) -> Entry:
    return Entry(f"{CC_BY_4}; {FONTS}", 0, "in the package")


def _digits(data_dir: Path) -> Entry:
    sources = digits.digit_sources()
    there = {s.title: len(digits.find(s, data_dir)) == len(s.files) for s in sources}
    licence = "; ".join(f"{s.title} {s.licence}" for s in sources)
    return Entry(licence, DIGITS_BYTES, _state(there))


def _pets(data_dir: Path) -> Entry:
    there = {
        "ImageNet": any((data_dir / name / "train").is_dir() for name in imagenet.FOLDERS),
        "VGG": (data_dir / oxford_pets.FOLDER / "images").is_dir(),
    }
    return Entry(f"{imagenet.LICENCE}; VGG {CC_BY_SA_4}", PETS_BYTES, _state(there))


def _state(there: Mapping[str, bool]) -> str:
    """As in "MNIST there, SVHN missing"."""
    return ", ".join(
        f"{title} {'there' if is_there else 'missing'}" for title, is_there in there.items()
    )


_LOOK: Mapping[str, Callable[[Path], Entry]] = {
    "digits_mini": _digits_mini,
    "digits": _digits,
    "pets": _pets,
}


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
    return Row(
        domain.name,
        {name: len(examples) for name, examples in domain.splits.items()},
        {name: examples.stored for name, examples in domain.splits.items()},
        classes,
        total_bytes([domain]),
        domain.source,
        domain.licence,
        domain.verified or "not checked",
        _folder(domain.train.images),
    )


def total_bytes(domains: Iterable[Domain]) -> int:
    """Of the prepared arrays of all domains; what several share counts once."""
    examples = [e for domain in domains for e in domain.splits.values()]
    arrays = [array for e in examples for array in (e.images, e.labels)]
    at = {(a.__array_interface__["data"][0], a.nbytes) for a in arrays}
    return sum(size for _, size in at)


def _folder(array: np.ndarray) -> Path | None:
    """The folder of the file that an array is a memory map of."""
    base: object = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    filename = getattr(base, "filename", None)
    return Path(filename).parent if filename else None
