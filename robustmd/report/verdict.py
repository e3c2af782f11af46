"""Better, worse, equivalent or undecided: the rule of docs/statistics.md, in one place, with the
intervals and the exact paired test (no distribution is assumed) that it reads."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robustmd.metrics import Better
from robustmd.report.estimate import CONFIDENCE, t_quantile

LEVEL = 0.05
FEWEST = 3  # pairs that decide anything: two can agree by chance
QUANTITIES = 3  # a method is compared in so many: one false word in twenty comparisons, not words
FEWEST_TESTED = 6  # pairs: below, no outcome has p < 0.05, since the smallest is 2/2^n
MOST_COUNTED = (
    40  # pairs for which the 2^n sign patterns are counted; more has no need of exactness
)
DRAWS = 200_000  # sign patterns drawn above that
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


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided p: the share of the 2^n sign patterns s with |Σ s_i d_i| ≥ |Σ d_i|.

    Under "which of the two is which is a coin toss", every pattern is equally likely, so that
    P(p ≤ α) ≤ α whatever the differences are distributed like. None for fewer than 6 pairs.
    (1, 2, 3, 4, 5, 6) gives 2/64.
    """
    d = np.asarray(differences, np.float64)
    if len(d) < FEWEST_TESTED:
        return None
    bound = abs(d.sum()) - 1e-9 * np.abs(d).sum()  # equal sums may differ by rounding
    if len(d) > MOST_COUNTED:
        return _drawn(d, bound)
    # Meet in the middle: every pattern's sum is one of the first half's plus one of the second's.
    first, second = _signed_sums(d[: len(d) // 2]), np.sort(_signed_sums(d[len(d) // 2 :]))
    inside = np.searchsorted(second, bound - first, "left") - np.searchsorted(
        second, -bound - first, "right"
    )
    count = 2 ** len(d) - int(np.maximum(inside, 0).sum())
    return count / 2 ** len(d)


def _signed_sums(d: np.ndarray) -> np.ndarray:
    """All 2^n sums Σ ±d_i."""
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _drawn(d: np.ndarray, bound: float) -> float:
    """(1 + hits)/(1 + draws), which is still a valid p; seeded, so that reports repeat."""
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        signs = random.integers(0, 2, (DRAWS // 100, len(d)), np.int8) * 2.0 - 1.0
        hits += int((np.abs(signs @ d) >= bound).sum())
    return (1 + hits) / (1 + DRAWS)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment over those that are there: with m of them in ascending order,
    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)). Values of None stay None.

    (0.01, 0.04, 0.03) gives (0.03, 0.06, 0.06).
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = largest
    return adjusted
