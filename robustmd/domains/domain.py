"""What the rest of the package knows of images: K domains, each with its splits."""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmd.domains.checksums import array_sha256
from robustmd.domains.examples import SPLITS, Examples, Views, held_out, stream
from robustmd.domains.tensors import arrays_of, examples_of
from robustmd.errors import Say, UserError, listed, printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SPLITS", "Domain", "DomainSet", "Examples"]

# The licences of the data that the package knows. Not legal advice: a data set's own terms count.
CC_BY_4 = "CC BY 4.0"
CC_BY_SA_3 = "CC BY-SA 3.0"
CC_BY_SA_4 = "CC BY-SA 4.0"
NON_COMMERCIAL = "non-commercial use only"
FONTS = "the fonts' licences, which leave pictures free"
# Whose pictures may be passed on if the source is named, as the sheet of examples and reports do.
# What is not listed never is, as ImageNet's (research terms) and a user's own images are not.
EMBEDDABLE = frozenset({CC_BY_4, CC_BY_SA_3, CC_BY_SA_4, FONTS})


@dataclass(frozen=True, eq=False)
class Domain:
    """One source of images with its splits. Raises UserError for arrays that do not fit together.

    source, licence: where the images come from and how they may be used, one line each. verified:
    whether the bytes are the published ones: "official", "not official", "own files", "made here",
    or "" if not known. checksums: what it is known by in `DomainSet.of`, {"train_images": hex, …},
    each an `array_sha256`, in whatever order.
    """

    name: str
    train: Examples
    test: Examples
    val: Examples | None = None
    source: str = ""
    licence: str = ""
    verified: str = ""
    checksums: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for split, examples in self.splits.items():
            if fault := examples.fault():
                raise UserError(f"domain {self.name}, {split} split: {fault}")
        sizes = {examples.size_in_words for examples in self.splits.values()}
        if len(sizes) > 1:
            raise UserError(
                f"domain {self.name}: its splits have images of sizes {listed(sorted(sizes))}"
            )

    @property
    def splits(self) -> dict[str, Examples]:
        """The examples of "train", "val" and "test", of those that there are."""
        return {name: e for name in SPLITS if (e := getattr(self, name)) is not None}

    def views_in_words(self) -> dict[str, str]:
        """{"train_views": …} for the splits whose views are not plain, for a fingerprint."""
        return {
            f"{split}_views": examples.views.in_words()
            for split, examples in self.splits.items()
            if examples.views != Views()
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
        held, kept = np.sort(order[:count]), np.sort(order[count:])
        as_tested = replace(self.train.views, variants=self.test.views.variants)
        val = replace(self.train.subset(held), views=as_tested)
        return replace(self, train=self.train.subset(kept), val=val)


@dataclass(frozen=True, eq=False, repr=False)
class DomainSet:
    """K ≥ 1 domains that one model is trained on, in order. Raises UserError if they do not agree.

    name:        the config's name, as in data=digits
    classes:     names of the classes; label i is classes[i]. Where labels are numbers, what each
                 of the L is; the model gives as many
    fingerprint: hex sha256 over names, splits and the arrays' checksums
    notes:       lines that belong into the run's log and summary, as of unofficial bytes
    labels:      "shared": every example is told apart from all classes; "per_domain": from those
        that its domain has (see `class_masks`)
    """

    name: str
    domains: tuple[Domain, ...]
    classes: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()
    labels: str = "shared"

    def __post_init__(self) -> None:
        if not self.domains:
            raise UserError(f"data {self.name}: there is no domain; at least one is needed")
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated:
            raise UserError(f"data {self.name}: two domains have one name: {listed(repeated)}")
        sizes = {d.name: d.train.size_in_words for d in self.domains}
        if len(set(sizes.values())) > 1:
            sides = listed([f"{name} {size}" for name, size in sizes.items()])
            raise UserError(f"data {self.name}: image sizes differ ({sides}); resize to one size")
        for domain in self.domains:
            for split, examples in domain.splits.items():
                if fault := self._label_fault(examples):
                    raise UserError(f"domain {domain.name}, {split} split: {fault}")

    @classmethod
    def of(
        cls,
        name: str,
        domains: Sequence[Domain],
        classes: Sequence[str],
        notes: Sequence[str] = (),
        say: Say = lambda _: None,
    ) -> DomainSet:
        """With the fingerprint of the domains' checksums; `say` is told the notes."""
        for note in notes:
            say(note)
        checksums = [[domain.name, sorted(domain.checksums.items())] for domain in domains]
        text = json.dumps([name, list(classes), checksums], separators=(",", ":"))
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        return cls(name, tuple(domains), tuple(classes), sha256, tuple(notes))

    def _label_fault(self, examples: Examples) -> str:
        """Why the labels are none of this data set, in words; "" where they are."""
        count, labels = len(self.classes), examples.targets
        if examples.are_numbers != self.are_numbers:
            return "its labels are numbers and others' are classes, or the other way round"
        if examples.are_numbers:
            wrong = f"{labels.shape[1]} numbers an image, of which `classes` names {count}"
            return wrong if labels.shape[1] != count else ""
        low, high = labels.min(), labels.max()
        wrong = f"labels run from {low} to {high}, but {count} classes allow 0 to {count - 1}"
        return wrong if low < 0 or high >= count else ""

    @property
    def are_numbers(self) -> bool:
        """Whether labels are numbers, as of a regression or of several labels an image."""
        return self.domains[0].train.are_numbers

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
        return self.domains[0].train.image_size

    def class_masks(self) -> np.ndarray:
        """Which classes each domain has an example of, in whatever split: bool [K, C]; of numbers
        each domain has all."""
        if self.are_numbers:
            return np.ones((len(self), len(self.classes)), dtype=bool)
        masks = np.zeros((len(self), len(self.classes)), dtype=bool)
        for mask, domain in zip(masks, self, strict=True):
            for examples in domain.splits.values():
                mask[examples.targets] = True
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
        if len({(id(domain.train.images), id(domain.train.rows)) for domain in self}) < len(self):
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
            domains.append(replace(domain, train=domain.train.subset(kept), checksums=sums))
        made = DomainSet.of(self.name, domains, self.classes, self.notes)
        return replace(made, labels=self.labels)

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
        drawn_as: dict[tuple[int, int], str] = {}
        domains = []
        for domain in self:
            # Domains of the same images, as noisy copies are, hold out the same ones: what one of
            # them is validated on, no other is trained on.
            same = id(domain.train.images), id(domain.train.rows)
            name = drawn_as.setdefault(same, domain.name)
            domains.append(domain.with_validation(share, stream(seed, name)))
        return replace(self, domains=tuple(domains))

    def __repr__(self) -> str:
        return f"{self._head()}\n{self._counts().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._head())}</p>{self._counts().to_html()}"

    def _head(self) -> str:
        size = self.domains[0].train.size_in_words
        what = f"{len(self)} domains, {self.labels_in_words}, {size}"
        return printable(f"DomainSet {self.name}: {what}")

    def _counts(self) -> pd.DataFrame:
        """Examples by domain and split; of many domains the first ten."""
        import pandas as pd  # noqa: PLC0415 - loading data needs none

        rows = [{split: len(e) for split, e in domain.splits.items()} for domain in self]
        return pd.DataFrame(rows[:10], index=[printable(name) for name in self.names[:10]])

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
        made = []
        for key, given in domains.items():
            train_x, train_y, test_x, test_y = arrays_of(key, given)
            train = examples_of(f"{key}, train", train_x, train_y, features)
            test = examples_of(f"{key}, test", test_x, test_y, features)
            sums = {
                f"{split}_{part}": array_sha256(getattr(examples, part))
                for split, examples in (("train", train), ("test", test))
                for part in ("images", "labels")
            }
            made.append(Domain(key, train, test, source="tensors in memory", checksums=sums))
        if classes is None:
            labels = [e.labels for d in made for e in d.splits.values()]
            counts = [y.shape[1] if y.ndim == 2 else y.max(initial=-1) + 1 for y in labels]
            classes = [str(label) for label in range(max(counts, default=0))]
        return cls.of(name, made, classes)
