"""What the rest of the package knows of images: K domains in one array, each with its splits."""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmd.domains.tensors import split_arrays
from robustmd.domains.views import SPLITS, Views
from robustmd.errors import Say, UserError, listed, printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Split:
    """One split of one domain: which of the data set's images it has, and how they are seen.

    With V variants it has n·V examples: example p is stored image rows[p // V] in variant p % V.

    all_images:  of the data set: uint8 [N, H, W, 3], features float32 [N, …] or tokens int64 [N, …]
    all_targets: int64 [N], the classes, or float32 [N, L], L numbers an image
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
        return self.stored * len(self.views.variants)

    @property
    def stored(self) -> int:
        """Number n of stored images; n = len(self) but for variants."""
        return len(self.rows)

    @property
    def images(self) -> np.ndarray:
        """The stored images [n, …]: a view where they lie in a row, else a copy."""
        return _taken(self.all_images, self.rows)

    @property
    def targets(self) -> np.ndarray:
        """The labels of the examples, in their order: int64 [n·V] or float32 [n·V, L]."""
        labels, variants = _taken(self.all_targets, self.rows), len(self.views.variants)
        return labels if variants == 1 else labels.repeat(variants, axis=0)

    def subset(self, positions: np.ndarray) -> Split:
        """The stored images at `positions` (int [m], each in 0..n−1) in all their variants."""
        return replace(self, rows=self.rows[positions])

    def fault(self) -> str:
        """What is wrong with the rows or views, in words; "" where nothing is."""
        images, rows = self.all_images, self.rows
        if rows.dtype != np.int64 or rows.ndim != 1:
            return f"rows are {rows.dtype} {list(rows.shape)}, not int64 [n]"
        if not len(rows):
            return "it has no examples"
        if rows.min() < 0 or rows.max() >= len(images):
            return f"rows run from {rows.min()} to {rows.max()}; there are {len(images)} images"
        if images.dtype != np.uint8:
            wrong = "features are seen as they are, without crop, turn or noise"
            return wrong if self.views != Views() else ""
        return self.views.fault(*images.shape[1:3]) or ""


def _taken(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """array[rows], a view where the rows follow each other."""
    if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return array[rows[0] : rows[0] + len(rows)]
    return array[rows]


@dataclass(frozen=True, eq=False)
class Domain:
    """One source of images with its splits: "train", "test" and perhaps "val".

    source, licence: where the images come from and how they may be used, one line each. verified:
    whether the bytes are the published ones: "official", "not official", "own files", "made here",
    or "" if not known. checksums: what a fingerprint knows it by, {"train_images": hex, …}.
    """

    name: str
    splits: Mapping[str, Split]
    source: str = ""
    licence: str = ""
    verified: str = ""
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
        plain = Views()
        return {
            f"{name}_views": split.views.in_words()
            for name, split in self.splits.items()
            if split.views != plain
        }

    def with_validation(self, share: float, rng: np.random.Generator) -> Domain:
        """What `DomainSet.with_validation` says, drawn from rng.

        Whole stored images go to either side, and a validation image is seen in the variants that a
        test image is: not in those that only expand a training set.
        """
        if self.val is not None:
            raise UserError(
                f"domain {self.name} has a validation split of its own; use data.validation=0"
            )
        total = self.train.stored
        if total < 2:
            raise UserError(
                f"domain {self.name} has {total} training example, too few to hold any out; "
                "use data.validation=0"
            )
        order, count = rng.permutation(total), held_out(total, share)
        # Sorted rows keep reading from the memory map sequential; batches draw at random anyhow.
        train, val = (self.train.subset(np.sort(part)) for part in np.split(order, [count])[::-1])
        as_tested = replace(val.views, variants=self.test.views.variants)
        splits = {**self.splits, "train": train, "val": replace(val, views=as_tested)}
        return replace(self, splits={name: splits[name] for name in SPLITS})


@dataclass(frozen=True, eq=False, repr=False)
class DomainSet:
    """K ≥ 1 domains that one model is trained on, in order. Raises UserError if they do not agree.

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
        if not self.domains:
            raise UserError(f"data {self.name}: there is no domain; at least one is needed")
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated:
            raise UserError(f"data {self.name}: two domains have one name: {listed(repeated)}")
        crop = self.domains[0].train.views.crop
        for domain in self:
            for name, split in domain.splits.items():
                shares = split.all_images is self.images and split.all_targets is self.targets
                fault = "" if shares else "its images are not in the data set's one array"
                if not (fault := fault or split.fault() or self._target_fault(split)):
                    fault = "" if split.views.crop == crop else "its crop is not the others'"
                if fault:
                    raise UserError(f"domain {domain.name}, {name} split: {fault}")

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
        labels an image), which `training.loss` compares. classes: the names of the labels 0, 1, …,
        or of the L numbers; "0", "1", … unless given. Raises UserError.
        """
        places = [(key, split) for key in domains for split in ("train", "test")]
        pairs = [pair for key in domains for pair in split_arrays(key, domains[key], features)]
        if not pairs:
            raise UserError(f"data {name}: there is no domain; at least one is needed")
        sizes = {key: size_in_words(x) for (key, _), (x, _) in zip(places, pairs, strict=True)}
        for (key, split), (x, y) in zip(places, pairs, strict=True):
            if size_in_words(x) != sizes[key]:
                both = listed(sorted({size_in_words(x), sizes[key]}))
                raise UserError(f"domain {key}: its splits have images of sizes {both}")
            if y.shape[1:] != pairs[0][1].shape[1:]:
                kinds = y.ndim, pairs[0][1].ndim
                fault = "numbers and others' are classes, or the other way round"
                fault = fault if kinds[0] != kinds[1] else "as many numbers as others' are not"
                raise UserError(f"domain {key}, {split} split: its labels are {fault}")
        if len(set(sizes.values())) > 1:
            sides = listed([f"{key} {size}" for key, size in sizes.items()])
            raise UserError(f"data {name}: image sizes differ ({sides}); resize to one size")
        images, targets = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        ends = np.cumsum([len(y) for _, y in pairs])
        made: dict[str, dict[str, Split]] = {key: {} for key in domains}
        sums: dict[str, dict[str, str]] = {key: {} for key in domains}
        for (key, split), (x, y), end in zip(places, pairs, ends, strict=True):
            rows = np.arange(end - len(y), end, dtype=np.int64)
            made[key][split] = Split(images, targets, rows, first=int(end) - len(y))
            # Features are hashed as the images [N, 1, …, 1] that they once were.
            as_image = x if x.dtype == np.uint8 else x[:, None, ..., None]
            sums[key] |= {f"{split}_images": array_sha256(as_image)}
            sums[key] |= {f"{split}_labels": array_sha256(y)}
        if classes is None:
            count = targets.shape[1] if targets.ndim == 2 else targets.max(initial=-1) + 1
            classes = [str(label) for label in range(count)]
        about = {"source": "tensors in memory"}
        return cls.of(
            name, [Domain(key, made[key], **about, checksums=sums[key]) for key in domains], classes
        )

    def _target_fault(self, split: Split) -> str:
        """Why the targets are none of this data set, in words; "" where they are."""
        count, targets = len(self.classes), split.targets
        if self.are_numbers:
            wrong = f"{targets.shape[1]} numbers an image, of which `classes` names {count}"
            finite = np.isfinite(targets).all()
            return "labels are not all finite" * (not finite) or wrong * (targets.shape[1] != count)
        low, high = targets.min(), targets.max()
        wrong = f"labels run from {low} to {high}, but {count} classes allow 0 to {count - 1}"
        return wrong if low < 0 or high >= count else ""

    @property
    def images(self) -> np.ndarray:
        """All stored images: uint8 [N, H, W, 3], C-contiguous, usually a read-only memory map;
        features float32 [N, …] or tokens int64 [N, …]."""
        return self.domains[0].train.all_images

    @property
    def targets(self) -> np.ndarray:
        """Their labels: int64 [N], the classes, or float32 [N, L], L numbers an image."""
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
        """Whether targets are numbers, as of a regression or of several labels an image."""
        return self.targets.ndim == 2

    @property
    def labels_in_words(self) -> str:
        """What an image's label is: one of "3 classes", or "3 numbers"."""
        return f"{len(self.classes)} {'numbers' if self.are_numbers else 'classes'}"

    @property
    def num_domains(self) -> int:
        """K."""
        return len(self.domains)

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
        if isinstance(key, str):
            if key not in self.names:
                known = listed(self.names)
                raise UserError(f"data {self.name} has no domain {key!r}; its domains are {known}")
            key = self.names.index(key)
        return self.domains[key]

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
        """Move a seeded random share of every domain's training examples to its validation split.

        share in [0, 1): 0 changes nothing; else round(share·n), at least 1, leaving at least 1.
        A domain's choice depends on the seed and its name alone. The fingerprint stays: it names
        the data, which the runs of a table share, while the choice is the seed's. Raises UserError.
        """
        if not 0 <= share < 1:
            raise UserError(f"data.validation={share}: allowed is a share from 0 to below 1")
        if share == 0:
            return self
        drawn_as: dict[int, str] = {}
        domains = []
        for domain in self:
            # Domains of the same images, as noisy copies are, hold out the same ones: what one of
            # them is validated on, no other is trained on.
            name = drawn_as.setdefault(id(domain.train.rows), domain.name)
            domains.append(domain.with_validation(share, stream(seed, name)))
        return replace(self, domains=tuple(domains))

    def __repr__(self) -> str:
        return f"{self._head()}\n{self._counts().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._head())}</p>{self._counts().to_html()}"

    def _head(self) -> str:
        size = size_in_words(self.images, self.image_size)
        what = f"{len(self)} domains, {self.labels_in_words}, {size}"
        return printable(f"DomainSet {self.name}: {what}")

    def _counts(self) -> pd.DataFrame:
        """Examples by domain and split; of many domains the first ten."""
        import pandas as pd  # noqa: PLC0415 - loading data needs none

        rows = [{split: len(e) for split, e in domain.splits.items()} for domain in self]
        return pd.DataFrame(rows[:10], index=[printable(name) for name in self.names[:10]])


def size_in_words(images: np.ndarray, seen: Sequence[int] = ()) -> str:
    """32×32 of images, or `seen` of them; else as "features [12, 8]" or "tokens [12]"."""
    if images.dtype == np.uint8:
        return "×".join(map(str, seen or images.shape[1:3]))
    kind = "tokens" if images.dtype == np.int64 else "features"
    return f"{kind} {list(images.shape[1:])}"


def array_sha256(array: np.ndarray) -> str:
    """Hex sha256 over an array's type, shape and values in row-major, little-endian order: the same
    whatever file, path, compression or byte order it came from."""
    head = f"{array.dtype.name} {tuple(map(int, array.shape))}\n"
    digest = hashlib.sha256(head.encode())
    digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


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
