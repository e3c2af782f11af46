"""What the rest of the package knows of images: K domains, each with its splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustmd.errors import UserError

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Examples:
    """One split of one domain: images with their labels.

    images: uint8 [N, H, W, 3], C-contiguous, usually a read-only memory map
    labels: int64 [N], aligned with images
    rows:   int64 [n], the rows of images that belong to this split (None: all N, in order)

    `Domain` checks the shapes and types, since it can name the domain and the split.
    """

    images: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        """Number n of examples in this split."""
        return len(self.labels) if self.rows is None else len(self.rows)

    @property
    def targets(self) -> np.ndarray:
        """The labels of this split's examples, in its order: int64 [n]."""
        return self.labels if self.rows is None else self.labels[self.rows]

    def subset(self, positions: np.ndarray) -> Examples:
        """The examples at `positions` (int [m]), sharing images. IndexError outside 0..n−1."""
        positions = np.asarray(positions, dtype=np.int64)
        if len(positions) and (positions.min() < 0 or positions.max() >= len(self)):
            raise IndexError(f"positions must lie in 0..{len(self) - 1}")
        rows = positions if self.rows is None else self.rows[positions]
        return replace(self, rows=rows)


@dataclass(frozen=True, eq=False)
class Domain:
    """One source of images with its splits. Raises UserError for arrays that do not fit together.

    source and licence are one line each: where the images come from and how they may be used.
    """

    name: str
    train: Examples
    test: Examples
    val: Examples | None = None
    source: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        for split in SPLITS:
            examples = self.split(split)
            fault = None if examples is None else _fault(examples)
            if fault:
                raise UserError(f"domain {self.name}, {split} split: {fault}")
        shapes = {examples.images.shape[1:3] for examples in self._present()}
        if len(shapes) > 1:
            raise UserError(f"domain {self.name}: its splits have images of sizes {sorted(shapes)}")

    def split(self, name: str) -> Examples | None:
        """The examples of "train", "val" or "test"; None where the domain has no such split."""
        if name not in SPLITS:
            raise ValueError(f"split {name!r}: allowed are {', '.join(SPLITS)}")
        examples: Examples | None = getattr(self, name)
        return examples

    def _present(self) -> list[Examples]:
        return [e for e in map(self.split, SPLITS) if e is not None]


def _fault(examples: Examples) -> str | None:
    """What is wrong with one split's arrays, in words, or None."""
    images, labels, rows = examples.images, examples.labels, examples.rows
    fault = None
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        fault = f"images are {images.dtype} {list(images.shape)}, not uint8 [N, H, W, 3]"
    elif not images.flags.c_contiguous:
        fault = "images are not C-contiguous; pass numpy.ascontiguousarray(images)"
    elif labels.dtype != np.int64 or labels.shape != images.shape[:1]:
        fault = f"labels are {labels.dtype} {list(labels.shape)}, not int64 [{len(images)}]"
    elif rows is not None and (rows.dtype != np.int64 or rows.ndim != 1):
        fault = f"rows are {rows.dtype} {list(rows.shape)}, not int64 [n]"
    elif not len(examples):
        fault = "it has no examples"
    elif rows is not None and (rows.min() < 0 or rows.max() >= len(images)):
        fault = f"rows run from {rows.min()} to {rows.max()}, but there are {len(images)} images"
    return fault


@dataclass(frozen=True, eq=False)
class DomainSet:
    """K ≥ 1 domains that one model is trained on, in order. Raises UserError if they do not agree.

    name:        the config's name, as in data=digits
    classes:     names of the classes; label i is classes[i]
    fingerprint: hex sha256 over names, splits and the arrays' checksums (see `fingerprint`)
    notes:       lines that belong into the run's log and summary, as of unofficial bytes
    """

    name: str
    domains: tuple[Domain, ...]
    classes: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.domains:
            raise UserError(f"data {self.name}: there is no domain; at least one is needed")
        if len(set(self.names)) < len(self.names):
            raise UserError(f"data {self.name}: two domains have one name: {', '.join(self.names)}")
        sizes = {d.name: d.train.images.shape[1:3] for d in self.domains}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name} {h}×{w}" for name, (h, w) in sizes.items())
            raise UserError(f"data {self.name}: image sizes differ ({listed}); resize to one size")
        for domain in self.domains:
            self._check_labels(domain)

    def _check_labels(self, domain: Domain) -> None:
        for split in SPLITS:
            examples = domain.split(split)
            if examples is None:
                continue
            low, high = examples.targets.min(), examples.targets.max()
            if low < 0 or high >= len(self.classes):
                raise UserError(
                    f"domain {domain.name}, {split} split: labels run from {low} to {high}, "
                    f"but {len(self.classes)} classes allow 0 to {len(self.classes) - 1}"
                )

    @property
    def num_domains(self) -> int:
        """K."""
        return len(self.domains)

    @property
    def names(self) -> tuple[str, ...]:
        """The domains' names, in order."""
        return tuple(domain.name for domain in self.domains)

    @property
    def image_size(self) -> tuple[int, int]:
        """(H, W), the same for every domain."""
        height, width = self.domains[0].train.images.shape[1:3]
        return int(height), int(width)

    def __iter__(self) -> Iterator[Domain]:
        return iter(self.domains)

    def __len__(self) -> int:
        return len(self.domains)

    def __getitem__(self, key: str | int) -> Domain:
        """The domain of that name or place. Raises UserError for an unknown name."""
        if isinstance(key, str):
            if key not in self.names:
                known = ", ".join(self.names)
                raise UserError(f"data {self.name} has no domain {key!r}; its domains are {known}")
            key = self.names.index(key)
        return self.domains[key]

    def with_validation(self, share: float, seed: int) -> DomainSet:
        """Move a seeded random share of every domain's training examples to its validation split.

        share in [0, 1): 0 changes nothing; else round(share·n), at least 1, leaving at least 1.
        A domain's choice depends on the seed and its name alone. Raises UserError.
        """
        from robustmd.domains.validation import hold_out  # noqa: PLC0415  # it imports this module

        return hold_out(self, share, seed)

    @classmethod
    def from_tensors(
        cls,
        domains: Mapping[str, Sequence[Any]],
        name: str = "tensors",
        classes: Sequence[str] | None = None,
    ) -> DomainSet:
        """Domains from arrays or tensors in memory: {"a": (train_x, train_y, test_x, test_y), …}.

        images: [N, H, W], [N, C, H, W] or [N, H, W, C] with C = 1 or 3; uint8 in 0..255 or floating
        point in [0, 1]; one channel is repeated to three. labels: integers [N]. classes: the names
        of the labels 0, 1, …; "0", "1", … up to the largest label unless given. Raises UserError.
        """
        from robustmd.domains.tensors import set_from_tensors  # noqa: PLC0415  # as above

        return set_from_tensors(domains, name, classes)
