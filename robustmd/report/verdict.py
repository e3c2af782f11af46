"""Better, worse, equivalent or undecided: the rule of docs/statistics.md, in one place."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from robustmd.report.estimate import CONFIDENCE, t_quantile
from robustmd.runs.reducers import Better

LEVEL = 0.05
FEWEST = 3  # pairs that decide anything: two can agree by chance
QUANTITIES = 3  # a method is compared in so many: one false word in twenty comparisons, not words
Word = Literal["better", "worse", "equivalent", "undecided"]


@dataclass(frozen=True)
class Difference:
    """Mean of n paired differences and the two ends of its 95 % t interval (None where n < 2).

    `sure`: the ends at 1 − 0.05/3 = 98.3 %, which better and worse are held against.
    """

    mean: float
    interval: tuple[float, float] | None
    n: int
    sure: tuple[float, float] | None = None


def difference(values: Iterable[float]) -> Difference:
    """d̄ ± t s/√n of paired differences d; s is their sample standard deviation, t = t_{0.975, n−1}
    for `interval` and t_{0.9917, n−1} for `sure`.

    Raises ValueError where there is none.
    """
    sample = list(values)
    if not sample:
        raise ValueError("values: got none; a difference needs at least one pair")
    mean, n = statistics.fmean(sample), len(sample)
    if n < 2:
        return Difference(mean, None, n)
    error = statistics.stdev(sample) / math.sqrt(n)
    half, wide = (error * t_quantile(n - 1, c) for c in (CONFIDENCE, 1 - LEVEL / QUANTITIES))
    return Difference(mean, (mean - half, mean + half), n, (mean - wide, mean + wide))


def is_too_coarse(found: Difference, within: float, resolution: float) -> bool:
    """Whether the interval lies inside ±`within` and says nothing: what is measured goes in steps
    of `resolution`, which is not smaller."""
    return found.n >= FEWEST and _is_inside(found, within) and resolution >= within > 0


def word(
    found: Difference,
    p: float | None,
    within: float,
    *,
    better: Better,
    resolution: float = 0.0,
) -> Word:
    """One word for a paired difference of what is measured in steps of `resolution`.

    1. undecided: fewer than 3 pairs.
    2. equivalent: the whole 95 % interval lies inside ±`within`; undecided where one step does not.
    3. better or worse, by the sign: the interval excludes 0 at 98.3 % too and, where there is a `p`
       (n >= 6), p <= 0.05.
    4. undecided: anything else.
    """
    if found.interval is None or found.n < FEWEST:
        return "undecided"
    if _is_inside(found, within):
        return "undecided" if is_too_coarse(found, within, resolution) else "equivalent"
    low, high = found.sure or found.interval
    if low <= 0 <= high or (p is not None and p > LEVEL):
        return "undecided"
    return "better" if (found.mean < 0) == (better == "smaller") else "worse"


def _is_inside(found: Difference, within: float) -> bool:
    return found.interval is not None and max(map(abs, found.interval)) <= within


def unpaired_difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """b̄ − ā with Welch's 95 % interval: ± t_{0.975, ν} s, s² = s_a²/n_a + s_b²/n_b,
    ν = s⁴ / (s_a⁴/(n_a²(n_a − 1)) + s_b⁴/(n_b²(n_b − 1))); no interval where one has n < 2.

    `n` is that of the smaller sample. Raises ValueError where one is empty.
    """
    if not a or not b:
        raise ValueError("values: an empty sample has no mean")
    mean, n = statistics.fmean(b) - statistics.fmean(a), min(len(a), len(b))
    if n < 2:
        return Difference(mean, None, n)
    parts = [(statistics.variance(sample) / len(sample), len(sample) - 1) for sample in (a, b)]
    square = sum(part for part, _ in parts)
    if square == 0:
        return Difference(mean, (mean, mean), n)
    degrees = square**2 / sum(part**2 / free for part, free in parts)
    half = t_quantile(degrees) * math.sqrt(square)
    return Difference(mean, (mean - half, mean + half), n)
