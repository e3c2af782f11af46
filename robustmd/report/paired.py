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
from robustmd.report.names import clean, is_many
from robustmd.report.numbers import difference_text, margin, p_text, step_unit
from robustmd.report.quantities import (
    MEAN_TEST_ACCURACY,
    WORST_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
    Quantity,
)
from robustmd.report.selection import Selection
from robustmd.report.settings_key import frozen, protocol
from robustmd.report.sheet import Cell, Sheet, field, make_sheet
from robustmd.report.verdict import (
    Difference,
    Word,
    difference,
    holm,
    is_too_coarse,
    sign_flip_p,
    word,
)

# What a method pays where there are many domains: the best of a thousand is one that was lucky.
MEAN = "mean over the domains"
ALIKE = "both trained on the same data in the same way"


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
        return margin(self.quantity.metric, self.reference_mean)

    @property
    def word(self) -> Word:
        """The verdict, by the rule of docs/statistics.md."""
        return word(
            self.difference,
            self.p,
            self.margin,
            better=self.quantity.metric.better,
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
        """Of the difference."""
        return step_unit(self.quantity.metric)

    @property
    def mean_text(self) -> str:
        return difference_text(self.quantity.metric, self.difference.mean)

    @property
    def interval_text(self) -> str:
        """ "[−0.612, −0.244]"; an en dash where n < 2."""
        if self.difference.interval is None:
            return "–"
        low, high = (difference_text(self.quantity.metric, x) for x in self.difference.interval)
        return f"[{low}, {high}]"

    @property
    def sentence(self) -> str:
        """ "opt − even, worst training loss: −0.512 nats [−0.66, −0.36], p = …, n = 9: better"."""
        interval = "no interval" if self.difference.interval is None else self.interval_text
        numbers = f"{self.mean_text} {self.unit} {interval}, {self.p_text}, n = {self.difference.n}"
        return f"{self.method} − {self.reference}, {self.what}: {numbers}: {self.said}"


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
        pairs = group.beside(reference, quantity).values()
        paired = [ours - theirs for ours, theirs in pairs]
        compared = [one for one in (*group.selected, *reference.selected) if one.seed in seeds]
        found.append(
            Comparison(
                method=group.label,
                reference=reference.label,
                quantity=quantity,
                note=note,
                seeds=seeds,
                difference=difference(paired),
                reference_mean=statistics.fmean(theirs for _, theirs in pairs),
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


def paired_sheet(found: Sequence[Comparison], selection: Selection, how: str = ALIKE) -> Sheet:
    """A row a comparison. `how`: what the two runs of a pair share, beside their seed."""
    baseline = next((one.baseline for one in found), BASELINES[0])
    fields = [
        field(
            f"method − {baseline}",
            lambda one: Cell(f"{one.method} − {one.reference}", (one.method, one.reference)),
            *("method", "reference"),
        ),
        field("quantity", lambda one: one.what, "quantity"),
        field(None, lambda one: one.unit, "unit"),
        field(
            "difference",
            lambda one: Cell(f"{one.mean_text} {one.unit}", (one.difference.mean,)),
            "difference",
            kind="number",
        ),
        field(
            "95 % interval",
            lambda one: Cell(one.interval_text, one.difference.interval or (None, None)),
            *("ci95_low", "ci95_high"),
            kind="number",
        ),
        field("p", lambda one: Cell(one.p_text, (one.p, one.p_holm)), "p", "p_holm"),
        field("n", lambda one: one.difference.n, "n", kind="number"),
        field(None, lambda one: " ".join(map(str, one.seeds)), "seeds"),
        field(None, lambda one: one.reference_mean, "reference_mean"),
        field(None, lambda one: one.margin, "margin"),
        field("verdict", lambda one: Cell(one.said, (one.word,), mark=one.word), "verdict"),
    ]
    name = f"paired differences to {baseline}"
    return make_sheet(name, found, fields, caption=_caption(clean(baseline), selection, how))


def _caption(baseline: str, selection: Selection, how: str) -> str:
    """What the numbers are, and the rule behind the word."""
    why = (
        ""
        if baseline == BASELINES[0]
        else (
            f"{baseline} is what --baseline asks for, or the first of {', '.join(BASELINES)} here; "
        )
    )
    return (
        f"Paired by seed: method − {baseline}, {how}; {why}every "
        f"value is of {selection.words}. Mean of the differences, 95 % t interval, exact paired "
        "permutation p (two-sided; Holm: adjusted over this table; none below n = 6), n = number "
        "of seeds both have. Equivalent: the interval lies inside ±0.5 points, where one test "
        f"image (the resolution) is less than that, or ±5 % of {baseline}'s loss. Better or worse: "
        "it excludes 0 at 98.3 % too (three quantities are looked at, 5 % for all of them) and, "
        "where there is a p, p ≤ 0.05. Undecided: anything else, and n < 3. "
        "Training loss: smaller is better; accuracy: larger."
    )
