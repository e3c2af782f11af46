"""Paired differences to even: same seed, same batches, same training; only the weights differ.

Batches do not depend on the method, so the differences of one seed's runs carry less noise than the
difference of two means.
"""

import csv
import io
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from robustmd.report.aggregate import Group, Section
from robustmd.report.names import markdown
from robustmd.report.numbers import difference_text
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import frozen, protocol

CONFIDENCE = 0.95
Word = Literal["better", "worse", "undecided"]


@dataclass(frozen=True)
class Difference:
    """Mean of n paired differences and the two ends of its 95 % t interval (None where n < 2)."""

    mean: float
    interval: tuple[float, float] | None
    n: int

    def word(self, *, smaller_is_better: bool) -> Word:
        """ "better" or "worse" by the direction where the interval excludes 0, else "undecided"."""
        if self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return "undecided"
        return "better" if (self.mean < 0) == smaller_is_better else "worse"


def difference(values: Iterable[float]) -> Difference:
    """d̄ ± t_{0.975, n−1} s/√n of paired differences d; s is their sample standard deviation.

    Raises ValueError where there is none.
    """
    from scipy import stats  # noqa: PLC0415 - half a second that only this needs

    sample = list(values)
    if not sample:
        raise ValueError("values: got none; a difference needs at least one pair")
    mean, n = statistics.fmean(sample), len(sample)
    if n < 2:
        return Difference(mean, None, n)
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1))
    half = quantile * statistics.stdev(sample) / math.sqrt(n)
    return Difference(mean, (mean - half, mean + half), n)


@dataclass(frozen=True)
class Comparison:
    """One method against even in one quantity; `note` says why the quantity is looked at."""

    method: str
    reference: str
    quantity: Quantity
    note: str
    seeds: tuple[int, ...]
    difference: Difference

    @property
    def word(self) -> Word:
        return self.difference.word(smaller_is_better=self.quantity.is_loss)

    @property
    def what(self) -> str:
        """ "worst test accuracy", "test accuracy on mnist, even's best domain"."""
        split = "training" if self.quantity.split == "train" else self.quantity.split
        measure = f"{split} {self.quantity.kind}"
        if self.quantity.domain is None:
            return f"worst {measure}"
        return f"{measure} on {self.quantity.domain}{self.note}"

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
    that even does best on (by its mean over these seeds).
    """
    found: list[Comparison] = []
    for group in section.mixtures:
        reference = _even_for(group, section.mixtures)
        if reference is None or reference is group:
            continue
        seeds = tuple(sorted(set(group.seeds) & set(reference.seeds)))
        if not seeds:
            continue
        best = _best_domain(reference, section.domains, seeds)
        quantities = (
            (WORST_TRAIN_LOSS, ""),
            (WORST_TEST_ACCURACY, ""),
            (Quantity("accuracy", "test", best), ", even's best domain"),
        )
        for quantity, note in quantities:
            ours, even = group.by_seed(quantity), reference.by_seed(quantity)
            paired = difference(ours[seed] - even[seed] for seed in seeds)
            names = group.label, reference.label
            found.append(Comparison(*names, quantity, note, seeds, paired))
    return tuple(found)


def _even_for(group: Group, mixtures: Sequence[Group]) -> Group | None:
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


PAIRED_CAPTION = (
    "Paired by seed: method − even, both trained on the same data in the same way. Mean of the "
    "differences, 95 % t interval, n = number of seeds both have. Better or worse: the interval "
    "excludes 0; undecided: it does not, or n < 2. Training loss: smaller is better; accuracy: "
    "larger."
)


def paired_markdown(found: Sequence[Comparison]) -> str:
    """A pipe table under its caption."""
    lines = [
        f"{PAIRED_CAPTION}\n",
        "| method − even | quantity | difference | 95 % interval | n | |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for one in found:
        names = markdown(f"{one.method} − {one.reference}"), markdown(one.what)
        numbers = f"{one.mean_text} {one.unit}", one.interval_text, str(one.difference.n)
        lines.append("| " + " | ".join((*names, *numbers, one.word)) + " |")
    return "\n".join(lines) + "\n"


def paired_csv(found: Sequence[Comparison]) -> str:
    """The same with every digit; empty interval fields where n < 2."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = "method,reference,quantity,unit,difference,ci95_low,ci95_high,n,seeds,verdict"
    writer.writerow(head.split(","))
    for one in found:
        low, high = one.difference.interval or ("", "")
        numbers = [one.difference.mean, low, high, one.difference.n]
        seeds = " ".join(map(str, one.seeds))
        names = [one.method, one.reference, one.what, one.unit]
        writer.writerow([*names, *numbers, seeds, one.word])
    return out.getvalue()
