"""Paired differences to a baseline (even, where it was run): same seed, same batches, same
training; only the weights differ.

Batches do not depend on the method, so the differences of one seed's runs carry less noise than the
difference of two means.
"""

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import BASELINES, Group, Section, is_baseline
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
from robustmd.report.verdict import (
    Difference,
    Word,
    difference,
    is_too_coarse,
    margin,
    word,
)

# What a method pays where there are many domains: the best of a thousand is one that was lucky.
MEAN = "mean over the domains"


@dataclass(frozen=True)
class Comparison:
    """One method against the baseline in one quantity; a `note` says that it is the price.

    `reference`: the baseline's row, `reference_mean` its mean over the seeds. `resolution`: the
    steps in which an accuracy can change [points]. `p`: exact paired permutation test, None
    below 6 seeds; `p_holm`: Holm-adjusted over all comparisons of the table.
    """

    method: str
    reference: str
    quantity: Quantity
    note: str
    seeds: tuple[int, ...]
    difference: Difference
    reference_mean: float
    baseline: str = BASELINES[0]
    resolution: float = 0.0
    p: float | None = None
    p_holm: float | None = None

    @property
    def margin(self) -> float:
        """Half width of the range in which methods count as equivalent: points, or nats."""
        return margin(self.reference_mean, is_loss=self.quantity.is_loss)

    @property
    def word(self) -> Word:
        """The verdict, by the rule of docs/statistics.md."""
        return word(
            self.difference,
            self.p,
            self.margin,
            smaller_is_better=self.quantity.is_loss,
            resolution=self.resolution,
        )

    @property
    def said(self) -> str:
        """The word, and why it is "undecided" where the numbers alone would say "equivalent"."""
        coarse = is_too_coarse(self.difference, self.margin, self.resolution)
        return f"{self.word}: resolution is {self.resolution:.3g} points" if coarse else self.word

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
        return bool(self.note)

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
    """Every mixture against the baseline of the same data and training, over the seeds both have.

    Quantities: worst training loss, worst test accuracy, and the price: test accuracy on the domain
    that the baseline does best on (by its mean over these seeds); of many domains, their mean.
    """
    found: list[Comparison] = []
    for group in section.mixtures:
        reference = reference_for(group, section)
        if reference is not None and reference is not group:
            found += _against(reference, group, section)
    adjusted = holm([one.p for one in found])
    return tuple(dataclasses.replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True))


def _against(reference: Group, group: Group, section: Section) -> list[Comparison]:
    seeds = tuple(sorted(set(group.seeds) & set(reference.seeds)))
    if not seeds:
        return []
    price = (MEAN_TEST_ACCURACY, MEAN)
    if not is_many(section.domains):
        best = _best_domain(reference, section.domains, seeds)
        price = (Quantity("accuracy", "test", best), f", {section.baseline}'s best domain")
    quantities = ((WORST_TRAIN_LOSS, ""), (WORST_TEST_ACCURACY, ""), price)
    found = []
    for quantity, note in quantities:
        ours, theirs = group.by_seed(quantity), reference.by_seed(quantity)
        paired = [ours[seed] - theirs[seed] for seed in seeds]
        compared = [one for one in (*group.selected, *reference.selected) if one.seed in seeds]
        found.append(
            Comparison(
                method=group.label,
                reference=reference.label,
                quantity=quantity,
                note=note,
                seeds=seeds,
                difference=difference(paired),
                reference_mean=statistics.fmean(theirs[seed] for seed in seeds),
                baseline=section.baseline,
                resolution=max(map(quantity.resolution, compared)),
                p=sign_flip_p(paired),
            )
        )
    return found


def reference_for(group: Group, section: Section) -> Group | None:
    """The section's baseline, trained on the same data in the same way; of several the first."""
    wanted = frozen(protocol(group.settings))
    for other in section.groups:
        if is_baseline(other, section.baseline) and frozen(protocol(other.settings)) == wanted:
            return other
    return None


def _best_domain(group: Group, domains: Sequence[str], seeds: Sequence[int]) -> str:
    def mean(domain: str) -> float:
        by_seed = group.by_seed(Quantity("accuracy", "test", domain))
        return statistics.fmean(by_seed[seed] for seed in seeds)

    return max(domains, key=mean)
