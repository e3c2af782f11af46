"""Paired differences to a baseline (even, where it was run): same seed, same batches, same
training; only the weights differ.

Batches do not depend on the method, so the differences of one seed's runs carry less noise than the
difference of two means.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from robustmd.registry import baselines
from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.estimate import (
    Difference,
    Word,
    difference,
    difference_text,
    holm,
    is_percentage,
    margin,
    sign_flip_p,
    word,
)
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import (
    MEAN_TEST_ACCURACY,
    WORST_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
    Quantity,
)
from robustmd.report.sheet import NOTHING, Cell, Sheet, field, make_sheet

# What a method pays where there are many domains: the best of a thousand is one that was lucky.
MEAN = "mean over the domains"
ALIKE = "both trained on the same data in the same way"


@dataclass(frozen=True)
class Comparison:
    """One method against another, the baseline, in one quantity; a `note` says that it is the price
    that the method pays for its worst domain.

    `reference`: the other's row, `reference_mean` its mean over the seeds. `margin`: half width of
    the range in which methods count as equivalent; `resolution`: the steps in which an accuracy can
    change [points]. `p_exact`: exact paired permutation test, None below 6 seeds; `p_holm`: the t
    test's p Holm-adjusted over all comparisons of the table, None below 3 seeds (see `adjusted`).
    """

    method: str
    reference: str
    quantity: Quantity
    seeds: tuple[int, ...]
    difference: Difference
    reference_mean: float
    margin: float
    resolution: float
    p_exact: float | None
    note: str = ""
    p_holm: float | None = None

    @property
    def word(self) -> Word:
        """By the rule of docs/statistics.md."""
        better, step = self.quantity.metric.better, self.resolution
        tests = self.p_holm, self.p_exact
        return word(self.difference, *tests, self.margin, better=better, resolution=step)

    @property
    def said(self) -> str:
        """The word, and why it is "undecided" where the numbers alone would say "equivalent"."""
        coarse = self.word == "undecided" and self.difference.is_inside(self.margin)
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
    def unit(self) -> str:
        """Of the difference: "points", "nats"."""
        metric = self.quantity.metric
        return "points" if is_percentage(metric) else metric.unit

    @property
    def mean_text(self) -> str:
        return difference_text(self.quantity.metric, self.difference.mean)

    @property
    def mean_in_unit(self) -> str:
        """ "+6.56 points"."""
        return f"{self.mean_text} {self.unit}".strip()

    @property
    def interval_text(self) -> str:
        """ "[−0.612, −0.244]"; an en dash where n < 2."""
        if self.difference.interval is None:
            return "–"
        low, high = (difference_text(self.quantity.metric, x) for x in self.difference.interval)
        return f"[{low}, {high}]"


def _p_cell(p: float | None) -> Cell:
    """Two significant digits: "0.031"; "<0.0001" below that."""
    if p is None:
        return Cell(NOTHING, (None,))
    digits = 2 if p >= 0.1 else 1 - math.floor(math.log10(max(p, 1e-4)))
    return Cell("<0.0001" if p < 1e-4 else f"{p:.{digits}f}", (p,))


def compared(group: Group, reference: Group, quantity: Quantity) -> Comparison | None:
    """Over the seeds that both have, to be `adjusted`; None where there is none."""
    pairs = group.beside(reference, quantity)
    if not pairs:
        return None
    paired = [ours - theirs for ours, theirs in pairs.values()]
    mean = statistics.fmean(theirs for _, theirs in pairs.values())
    runs = [one for one in (*group.selected, *reference.selected) if one.run.seed in pairs]
    step = max(map(quantity.resolution, runs))
    names = group.label, reference.label, quantity, tuple(pairs)
    within = margin(quantity.metric, mean)
    found = difference(paired, step)
    return Comparison(*names, found, mean, within, step, sign_flip_p(paired))


def adjusted(found: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The same comparisons, which are all of one table, each with its Holm-adjusted p."""
    every = tuple(found)
    values = holm([one.difference.p for one in every])
    return tuple(replace(one, p_holm=p) for one, p in zip(every, values, strict=True))


def comparisons(section: Section) -> tuple[Comparison, ...]:
    """Every mixture against the baseline of the same data and training, over the seeds both have.

    Quantities: worst training loss, worst test accuracy, and the price: test accuracy on the domain
    that the baseline does best on (by its mean over these seeds); of many domains, their mean.
    """
    found: list[Comparison] = []
    for group in section.mixtures:
        reference = reference_for(group, section)
        if reference is None or reference is group:
            continue
        price, note = _price(group, reference, section)
        for plain in (WORST_TRAIN_LOSS, WORST_TEST_ACCURACY, price):
            quantity = plain.measured_by(section.loss)
            one = compared(group, reference, quantity)
            if one is not None:
                found.append(replace(one, note=note if plain is price else ""))
    return adjusted(found)


def _price(group: Group, reference: Group, section: Section) -> tuple[Quantity, str]:
    """The quantity that is the price, and what it is."""
    if is_many(section.domains):
        return MEAN_TEST_ACCURACY, MEAN
    seeds = set(group.seeds) & set(reference.seeds)

    def total(quantity: Quantity) -> float:
        return math.fsum(x for seed, x in reference.by_seed(quantity).items() if seed in seeds)

    plain = (Quantity("accuracy", "test", domain) for domain in section.domains)
    each = [quantity.measured_by(section.loss) for quantity in plain]
    best = max if each[0].metric.better == "larger" else min
    return best(each, key=total), f", {section.baseline}'s best domain"


def reference_for(group: Group, section: Section) -> Group | None:
    """The section's baseline, trained on the same data in the same way; of several the first."""
    alike = (g for g in section.groups if g.settings.protocol == group.settings.protocol)
    return next((g for g in alike if is_baseline(g, section.baseline)), None)


def forest(found: Sequence[Comparison]) -> list[tuple[Comparison, Comparison | None]]:
    """What a forest plot shows: each method's difference to the baseline in worst test accuracy
    (or loss, where there is none), and in the price, None where there is none."""
    prices = {one.method: one for one in found if one.note}
    return [(one, prices.get(one.method)) for one in found if one.quantity.is_worst_test]


def paired_sheet(found: Sequence[Comparison], section: Section, how: str = ALIKE) -> Sheet:
    """One row for each comparison. `how`: what the two runs of a pair share, beside their seed."""
    baseline = section.baseline

    def row(one: Comparison) -> Cell:
        return Cell(f"{one.method} − {one.reference}", (one.method, one.reference))

    fields = [
        field(f"method − {baseline}", row, "method", "reference"),
        field("quantity", lambda one: one.what, "quantity"),
        field(None, lambda one: one.unit, "unit"),
        field(
            "difference",
            lambda one: Cell(one.mean_in_unit, (one.difference.mean,)),
            "difference",
            kind="number",
        ),
        field(
            "95 % interval",
            lambda one: Cell(one.interval_text, one.difference.interval or (None, None)),
            *("ci95_low", "ci95_high"),
            kind="number",
        ),
        field("n", lambda one: one.difference.n, "n", kind="number"),
        field("p", lambda one: _p_cell(one.difference.p), "p_t", kind="number"),
        field("exact p", lambda one: _p_cell(one.p_exact), "p_exact", kind="number"),
        field(None, lambda one: " ".join(map(str, one.seeds)), "seeds"),
        field(None, lambda one: one.reference_mean, "reference_mean"),
        field(None, lambda one: one.margin, "margin"),
        field("Holm p", lambda one: _p_cell(one.p_holm), "p_holm", kind="number"),
        field("verdict", lambda one: Cell(one.said, (one.word,), mark=one.word), "verdict"),
    ]
    name = f"paired differences to {baseline}"
    return make_sheet(name, found, fields, caption=_caption(section, how))


def _caption(section: Section, how: str) -> str:
    """What the numbers are, and the rule behind the word."""
    baseline = clean(section.baseline)
    why = f"{baseline} is what --baseline asks for, or the first of {', '.join(baselines())} here; "
    return (
        f"Paired by seed: method − {baseline}, {how}; {'' if baseline == baselines()[0] else why}"
        f"every value is of {section.selection.words}. Mean of the differences, 95 % t interval, "
        "n = number of seeds both have, two-sided p of the paired t test (none below n = 3) and of "
        "the exact paired permutation test (none below n = 6), Holm: the t test's p adjusted over "
        "this table. Equivalent: the interval lies inside ±0.5 points, where one "
        "test image (the resolution) is less than that, or ±5 % of "
        f"{baseline}'s loss. Better or worse: Holm p ≤ 0.05, p ≤ 0.05/3 (three quantities are "
        "looked at) and, where there is one, exact p ≤ 0.05. Undecided: anything else, and n < 3. "
        "Training loss: smaller is better; accuracy: larger."
    )
