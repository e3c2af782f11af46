"""Paired differences to even: same seed, same batches, same training; only the weights differ.

Batches do not depend on the method, so the differences of one seed's runs carry less noise than the
difference of two means.
"""

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import Group, Section
from robustmd.report.many import is_many
from robustmd.report.names import clean
from robustmd.report.numbers import difference_text, p_text
from robustmd.report.permutation import holm, sign_flip_p
from robustmd.report.quantities import (
    MEAN_TEST_ACCURACY,
    WORST_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
    Quantity,
)
from robustmd.report.settings_key import frozen, protocol
from robustmd.report.verdict import Difference, Word, difference, margin, word

BEST = ", even's best domain"  # what a method pays
# What it pays where there are many: the best of a thousand is one that was lucky with even.
MEAN = "mean over the domains"


@dataclass(frozen=True)
class Comparison:
    """One method against even in one quantity; `note` says why the quantity is looked at.

    `even`: even's mean over the seeds. `p`: exact paired permutation test, None below 6 seeds;
    `p_holm`: Holm-adjusted over all comparisons of the table.
    """

    method: str
    reference: str
    quantity: Quantity
    note: str
    seeds: tuple[int, ...]
    difference: Difference
    even: float
    p: float | None = None
    p_holm: float | None = None

    @property
    def margin(self) -> float:
        """Half width of the range in which methods count as equivalent: points, or nats."""
        return margin(self.even, is_loss=self.quantity.is_loss)

    @property
    def word(self) -> Word:
        """The verdict, by the rule of docs/statistics.md."""
        return word(self.difference, self.p, self.margin, smaller_is_better=self.quantity.is_loss)

    @property
    def what(self) -> str:
        """ "worst test accuracy", "test accuracy on mnist, even's best domain"."""
        split = "training" if self.quantity.split == "train" else self.quantity.split
        measure = f"{split} {self.quantity.kind}"
        if self.quantity.domain is None:
            return f"{self.quantity.over} {measure}"
        return clean(f"{measure} on {self.quantity.domain}{self.note}")

    @property
    def is_price(self) -> bool:
        """Whether it is what the method pays for its worst domain, in test accuracy."""
        return self.note in (BEST, MEAN)

    @property
    def p_text(self) -> str:
        """ "p = 0.031 (Holm 0.094)"; why there is none where there is none."""
        if self.p is None or self.p_holm is None:
            return "no p below n = 6"
        return f"p = {p_text(self.p)} (Holm {p_text(self.p_holm)})"

    @property
    def unit(self) -> str:
        return "nats" if self.quantity.is_loss else "points"

    @property
    def mean_text(self) -> str:
        return difference_text(self.difference.mean, is_loss=self.quantity.is_loss)

    @property
    def interval_text(self) -> str:
        """ "[−0.612, −0.244]"; an en dash where n < 2."""
        if self.difference.interval is None:
            return "–"
        low, high = (
            difference_text(end, is_loss=self.quantity.is_loss) for end in self.difference.interval
        )
        return f"[{low}, {high}]"


def comparisons(section: Section) -> tuple[Comparison, ...]:
    """Every mixture against the even of the same data and training, over the seeds both have.

    Quantities: worst training loss, worst test accuracy, and the price: test accuracy on the domain
    that even does best on (by its mean over these seeds); of many domains, their mean.
    """
    found: list[Comparison] = []
    for group in section.mixtures:
        reference = even_for(group, section.mixtures)
        if reference is not None and reference is not group:
            found += _against(reference, group, section.domains)
    adjusted = holm([one.p for one in found])
    return tuple(dataclasses.replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True))


def _against(reference: Group, group: Group, domains: Sequence[str]) -> list[Comparison]:
    seeds = tuple(sorted(set(group.seeds) & set(reference.seeds)))
    if not seeds:
        return []
    price = (MEAN_TEST_ACCURACY, MEAN)
    if not is_many(domains):
        price = (Quantity("accuracy", "test", _best_domain(reference, domains, seeds)), BEST)
    quantities = ((WORST_TRAIN_LOSS, ""), (WORST_TEST_ACCURACY, ""), price)
    found = []
    for quantity, note in quantities:
        ours, even = group.by_seed(quantity), reference.by_seed(quantity)
        paired = [ours[seed] - even[seed] for seed in seeds]
        mean = statistics.fmean(even[seed] for seed in seeds)
        found.append(
            Comparison(
                method=group.label,
                reference=reference.label,
                quantity=quantity,
                note=note,
                seeds=seeds,
                difference=difference(paired),
                even=mean,
                p=sign_flip_p(paired),
            )
        )
    return found


def even_for(group: Group, mixtures: Sequence[Group]) -> Group | None:
    """Even with uniform weights, trained on the same data in the same way."""
    wanted = frozen(protocol(group.settings))
    for other in mixtures:
        uniform = other.method == "even" and other.settings.get("method.prior") is None
        if uniform and frozen(protocol(other.settings)) == wanted:
            return other
    return None


def _best_domain(group: Group, domains: Sequence[str], seeds: Sequence[int]) -> str:
    def mean(domain: str) -> float:
        by_seed = group.by_seed(Quantity("accuracy", "test", domain))
        return statistics.fmean(by_seed[seed] for seed in seeds)

    return max(domains, key=mean)
