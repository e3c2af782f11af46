"""The images of a run: K domains in one array, each with its splits, and how they are seen."""

from __future__ import annotations

import hashlib
import html
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmd.domains.from_python import check_part, read_parts
from robustmd.errors import Say, UserError, listed, printable

if TYPE_CHECKING:
    import pandas as pd

SPLITS = ("train", "val", "test")
LONGEST_NAME = 200


@dataclass(frozen=True)
class Views:
    """How the stored images of a split are seen: in variants, cropped and noisy, in this order. By
    default each is seen once, as it is. variants.py carries it out on the device.

    variants: "identity", "flip_horizontal", "flip_vertical", "rotate_15" by any degrees in (0,
        360), counter-clockwise; V ≥ 1 of them. Each stored image counts once for each.
    crop: side in pixels of a random square in training and the central one in measurement; None:
        the whole image.
    sigma: σ ≥ 0 of the noise N(0, σ²) that is added to every pixel and channel in 0..255, then
        rounded and clipped: fresh at each draw in training, fixed for each image in measurement.
    """

    variants: tuple[str, ...] = ("identity",)
    crop: int | None = None
    sigma: float = 0.0

    def in_words(self) -> str:
        """One text for equal views and another for different ones, as a fingerprint needs."""
        return json.dumps([list(self.variants), self.crop, float(self.sigma)])


@dataclass(frozen=True, eq=False)
class Split:
    """One split of one domain: which of the data set's images it has, and how they are seen.

    With V variants it has n·V examples: example p is stored image rows[p // V] in variant p % V.

    all_images:  of the data set: uint8 [N, H, W, 3], features float32 [N, …] or tokens int64 [N, …]
    all_targets: int64 [N], the classes; float32 [N, L], numbers; int64 [N, L], tokens
    rows:        int64 [n], of these arrays
    first:       the row at which the domain's own images begin: the noise that an image is measured
                 with, and its id in predictions.npz, count from there
    """

    all_images: np.ndarray
    all_targets: np.ndarray
    rows: np.ndarray
    views: Views = Views()
    first: int = 0

    def __len__(self) -> int:
        """Number n·V of examples."""
        return len(self.rows) * len(self.views.variants)

    @property
    def stored(self) -> int:
        """Number n of stored images; n = len(self) but for variants."""
        return len(self.rows)

    @property
    def images(self) -> np.ndarray:
        """The stored images [n, …]: a view where they lie in a row, else a copy."""
        start, end = self.rows[0], self.rows[0] + len(self.rows)
        in_a_row = np.array_equal(self.rows, np.arange(start, end))
        return self.all_images[start:end] if in_a_row else self.all_images[self.rows]

    @property
    def targets(self) -> np.ndarray:
        """The labels of the examples, in their order: int64 [n·V], or float32 or int64 [n·V, L]."""
        return self.all_targets[self.rows].repeat(len(self.views.variants), axis=0)

    def subset(self, positions: np.ndarray) -> Split:
        """The stored images at `positions` (int [m], each in 0..n−1) in all their variants."""
        return replace(self, rows=self.rows[positions])


@dataclass(frozen=True, eq=False)
class Domain:
    """One source of images with its splits: "train", "test" and perhaps "val".

    source, licence: where the images come from and how they may be used, one line each. checksums:
    what a fingerprint knows it by, {"train_images": hex, …}.
    """

    name: str
    splits: Mapping[str, Split]
    source: str = ""
    licence: str = ""
    checksums: Mapping[str, str] = field(default_factory=dict)

    @property
    def train(self) -> Split:
        return self.splits["train"]

    @property
    def test(self) -> Split:
        return self.splits["test"]

    @property
    def val(self) -> Split | None:
        return self.splits.get("val")

    def views_in_words(self) -> dict[str, str]:
        """{"train_views": …} of the splits whose views are not plain, for the checksums."""
        seen = {name: split.views for name, split in self.splits.items()}
        return {f"{name}_views": v.in_words() for name, v in seen.items() if v != Views()}


@dataclass(frozen=True, eq=False, repr=False)
class DomainSet:
    """K ≥ 1 domains that one model is trained on, in order.

    name:        the config's name, as in data=digits
    domains:     of one array of images and one of targets, which all of them share
    classes:     names of the classes; target i is classes[i]. Where targets are numbers, what each
                 of the L is; the model gives as many
    fingerprint: hex sha256 over names, splits and the arrays' checksums
    notes:       lines that belong into the run's log and summary, as of unofficial bytes
    labels:      "shared": every example is told apart from all classes; "per_domain": from those
                 that its domain has (see `class_masks`)
    files:       [N], the file of each stored image, where it has one of its own
    """

    name: str
    domains: tuple[Domain, ...]
    classes: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()
    labels: str = "shared"
    files: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_names("domain", self.names, f"data {self.name}")

    @classmethod
    def of(
        cls,
        name: str,
        domains: Sequence[Domain],
        classes: Sequence[str],
        notes: Sequence[str] = (),
        say: Say = lambda _: None,
        files: Sequence[str] | None = None,
    ) -> DomainSet:
        """With the fingerprint of the domains' checksums; `say` is told the notes."""
        for note in notes:
            say(note)
        checksums = [[domain.name, sorted(domain.checksums.items())] for domain in domains]
        text = json.dumps([name, list(classes), checksums], separators=(",", ":"))
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        return cls(name, tuple(domains), tuple(classes), sha256, tuple(notes), files=files)

    @classmethod
    def from_tensors(
        cls,
        domains: Mapping[str, Sequence[Any]],
        name: str = "tensors",
        classes: Sequence[str] | None = None,
        features: bool = False,
    ) -> DomainSet:
        """Domains from arrays or tensors in memory: {"a": (train_x, train_y, test_x, test_y), …},
        or from torch's map-style Datasets of pairs (x, y), read once: {"a": (train, test), …}.

        images: [N, H, W], [N, C, H, W] or [N, H, W, C] with C = 1 or 3; uint8 in 0..255 or floating
        point in [0, 1]; one channel is repeated to three. Or features [N, d], floating point, or
        tokens [N, L], int64, for a backbone that takes them; of any shape [N, …] with
        features=True, which reads nothing as an image. labels: integers [N], the classes; or
        floating point [N] or [N, L], the numbers that a model is to give (0 and 1 for several
        labels an image), or integers [N, L], tokens, which `training.loss` compares with what the
        model gives. classes: the names of the labels 0, 1, …, or of the L numbers; "0", "1", …
        unless given. A Dataset whose items change when read again is noted. Raises UserError.
        """
        if not domains:
            raise UserError(f"data {name}: there is no domain; at least one is needed")
        parts, changing = read_parts(domains, features)
        if classes is None:
            tops = [int(part.targets.max()) + 1 for part in parts if part.targets.ndim == 1]
            last = parts[0].targets
            count = max(tops) if last.ndim == 1 else last.shape[1]
            classes = [str(number) for number in range(count)]
        for part in parts:
            check_part(part, parts[0], len(classes))
        images = np.concatenate([part.images for part in parts])
        targets = np.concatenate([part.targets for part in parts])
        splits: dict[str, dict[str, Split]] = {domain: {} for domain in domains}
        sums: dict[str, dict[str, str]] = {domain: {} for domain in domains}
        end = 0
        for domain, split, x, y in parts:
            start, end = end, end + len(y)
            rows = np.arange(start, end, dtype=np.int64)
            splits[domain][split] = Split(images, targets, rows, first=start)
            # Features are hashed as the images [N, 1, …, 1] that they once were.
            as_image = x if x.dtype == np.uint8 else x[:, None, ..., None]
            sums[domain] |= {f"{split}_images": array_sha256(as_image)}
            sums[domain] |= {f"{split}_labels": array_sha256(y)}
        source = "tensors in memory"
        made = [Domain(d, splits[d], source, checksums=sums[d]) for d in domains]
        note = (
            f"warning: the Dataset of {listed(changing)} gives other items when read again: what "
            "its transforms draw was drawn once, and each call is another run; "
            "data.augment=standard, or an augmentation of your own, draws anew for each batch"
        )
        return cls.of(name, made, classes, [note] if changing else [])

    @property
    def images(self) -> np.ndarray:
        """All stored images: uint8 [N, H, W, 3], C-contiguous, usually a read-only memory map;
        features float32 [N, …] or tokens int64 [N, …]."""
        return self.domains[0].train.all_images

    @property
    def targets(self) -> np.ndarray:
        """Their labels: int64 [N], the classes, or float32 or int64 [N, L], L numbers an image."""
        return self.domains[0].train.all_targets

    @property
    def are_images(self) -> bool:
        """Whether the model sees images, and no features or tokens, which it takes as they are."""
        return self.images.dtype == np.uint8

    @property
    def are_tokens(self) -> bool:
        """Whether the model sees tokens, int64 [N, …]."""
        return self.images.dtype == np.int64

    @property
    def are_numbers(self) -> bool:
        """Whether targets are numbers, as of a regression, of several labels, or of tokens."""
        return self.targets.ndim == 2

    @property
    def names(self) -> tuple[str, ...]:
        """The domains' names, in order."""
        return tuple(domain.name for domain in self.domains)

    @property
    def image_size(self) -> tuple[int, ...]:
        """(H, W) of what the model sees, the same for every domain; (1, …) of features [N, …]."""
        if not self.are_images:
            return (1, *self.images.shape[1:])
        crop = self.domains[0].train.views.crop
        return self.images.shape[1:3] if crop is None else (crop, crop)

    def class_masks(self) -> np.ndarray:
        """Which classes each domain has an example of, in whatever split: bool [K, C]; of numbers
        each domain has all."""
        masks = np.full((len(self), len(self.classes)), self.are_numbers)
        for mask, domain in zip(masks, self, strict=True):
            for split in domain.splits.values():
                mask[slice(None) if self.are_numbers else split.targets] = True
        return masks

    def absent_classes(self) -> np.ndarray:
        """The classes that play no part in a domain's loss and accuracy: bool [K, C]."""
        masks = self.class_masks()
        return ~masks if self.labels == "per_domain" else np.zeros_like(masks)

    def __iter__(self) -> Iterator[Domain]:
        return iter(self.domains)

    def __len__(self) -> int:
        return len(self.domains)

    def __getitem__(self, key: str | int) -> Domain:
        """The domain of that name or place. Raises UserError for an unknown name."""
        if not isinstance(key, str):
            return self.domains[key]
        if key not in self.names:
            known = listed(self.names)
            raise UserError(f"data {self.name} has no domain {key!r}; its domains are {known}")
        return self.domains[self.names.index(key)]

    def with_sizes(self, sizes: Sequence[int]) -> DomainSet:
        """Keep only so many training images of each domain, drawn alike for every run.

        sizes: [K], 1 <= size <= the domain's stored training images. Smaller sizes are subsets of
        larger ones. The fingerprint is another one, since the data are. Raises UserError.
        """
        if len(sizes) != len(self):
            raise UserError(
                f"data.sizes={list(sizes)}: has {len(sizes)} entries; must have {len(self)}, one "
                f"for each of {listed(self.names)}"
            )
        if len({id(domain.train.rows) for domain in self}) < len(self):
            raise UserError("data.sizes: is not for domains that are copies of the same images")
        domains = []
        for domain, size in zip(self, sizes, strict=True):
            if size > domain.train.stored:
                raise UserError(
                    f"data.sizes={list(sizes)}: {domain.name} has {domain.train.stored} training "
                    "images; give at most so many"
                )
            kept = np.sort(stream(0, f"{domain.name}/size").permutation(domain.train.stored)[:size])
            sums = {"of": self.fingerprint, "train_kept": array_sha256(kept)}
            splits = {**domain.splits, "train": domain.train.subset(kept)}
            domains.append(replace(domain, splits=splits, checksums=sums))
        smaller = DomainSet.of(self.name, domains, self.classes, self.notes, files=self.files)
        return replace(smaller, labels=self.labels)

    def with_validation(self, share: float, seed: int) -> DomainSet:
        """Move a seeded random share of every domain's training images to its validation split.

        share in (0, 1): round(share·n), at least 1, leaving at least 1. A domain's choice depends
        on the seed and its name alone. The fingerprint stays: it names the data, which the runs of
        a table share, while the choice is the seed's. Whole images go to either side, and a
        validation image is seen in the variants that a test image is: not in those that only expand
        a training set. Raises UserError.
        """
        drawn_as: dict[int, str] = {}
        domains = []
        for domain in self:
            total = domain.train.stored
            if domain.val is not None or total < 2:
                has = "a validation split of its own" if total > 1 else f"{total} training image"
                raise UserError(f"domain {domain.name} has {has}; use data.validation=0")
            # Domains of the same images, as noisy copies are, hold out the same ones: what one of
            # them is validated on, no other is trained on.
            name = drawn_as.setdefault(id(domain.train.rows), domain.name)
            order = stream(seed, name).permutation(total)
            held, kept = np.split(order, [held_out(total, share)])
            # Sorted rows keep reading from the memory map sequential; batches draw at random.
            train, val = (domain.train.subset(np.sort(part)) for part in (kept, held))
            as_tested = replace(val.views, variants=domain.test.views.variants)
            splits = {"train": train, "val": replace(val, views=as_tested), "test": domain.test}
            domains.append(replace(domain, splits=splits))
        return replace(self, domains=tuple(domains))

    def __repr__(self) -> str:
        return f"{self.head()}\n{self._counts().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.head())}</p>{self._counts().to_html()}"

    def head(self) -> str:
        """Name, domains, classes and the size of what the model sees, in a line."""
        kind = "numbers" if self.are_numbers else "classes"
        size = "×".join(map(str, self.image_size))
        if not self.are_images:
            size = f"{'tokens' if self.are_tokens else 'features'} {list(self.image_size[1:])}"
        what = f"{len(self)} domains, {len(self.classes)} {kind}, {size}"
        return printable(f"DomainSet {self.name}: {what}")

    def _counts(self) -> pd.DataFrame:
        """Examples by domain and split; of many domains the first ten."""
        import pandas as pd  # noqa: PLC0415 - loading data needs none

        rows = [{split: len(e) for split, e in domain.splits.items()} for domain in self]
        return pd.DataFrame(rows[:10], index=[printable(name) for name in self.names[:10]])


def array_sha256(array: np.ndarray) -> str:
    """Hex sha256 over an array's type, shape and values in row-major, little-endian order: the same
    whatever file, path, compression or byte order it came from."""
    head = f"{array.dtype.name} {tuple(map(int, array.shape))}\n"
    digest = hashlib.sha256(head.encode())
    digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def check_names(kind: str, names: Iterable[Any], where: str) -> None:
    """Names become keys of files and columns of tables: no slash, no control character. Raises
    UserError."""
    for name in names:
        is_text = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
        if not is_text or name in (".", "..") or any(map(_is_unfit, name)):
            raise UserError(
                f"{printable(where)}: {kind} {printable(name) if name else repr(name)} must be "
                f"text, 1 to {LONGEST_NAME} printable characters without /"
            )


def _is_unfit(letter: str) -> bool:
    return letter == "/" or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


# --- seeded draws: who is held out, and a test split for a domain that has none -------------------


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on the seed and on whose they are alone."""
    entropy = [seed, *hashlib.sha256(name.encode()).digest()[:8]]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def held_out(total: int, share: float) -> int:
    """How many of `total` ≥ 2: round(share·total), at least 1, leaving at least 1."""
    return min(max(1, round(share * total)), total - 1)


def seeded_split(
    labels: np.ndarray, share: float, seed: int, domain: str
) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): sorted positions, int64, of the examples with these labels (int [n], n ≥ 2).

    The test split has `held_out` examples, of every class the same share but for rounding: the
    examples lie in the order of their classes, within a class in a random one, and every
    (1/share)-th is taken from a random start. It depends on the labels, the seed and the domain's
    name alone, so that all runs share it.
    """
    total = len(labels)
    count = held_out(total, share)
    rng = stream(seed, domain)
    by_class = np.lexsort((rng.random(total), labels))
    spaced = np.floor((np.arange(count) + rng.random()) * total / count).astype(np.int64)
    chosen = np.zeros(total, dtype=bool)
    chosen[by_class[spaced]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
