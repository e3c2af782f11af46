"""Better, worse, equivalent or undecided: the rule of docs/statistics.md, with the intervals and
the exact paired test (no distribution is assumed) that it reads."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robustmd.metrics import Better
from robustmd.registry import Metric
from robustmd.report.estimate import is_percentage, t_quantile, two_sided_p

POINTS = 0.5  # of a percentage: nobody would choose a method for less
SHARE = 0.05  # of any other reference
LEVEL = 0.05
FEWEST = 3  # pairs that decide anything: two can agree by chance
QUANTITIES = 3  # a method is compared in so many, each at a third of the level
FEWEST_TESTED = 6  # pairs: below, no outcome has p < 0.05, since the smallest is 2/2^n
MOST_COUNTED = 16  # pairs for which all 2^n sign patterns are counted
DRAWS = 100_000  # sign patterns drawn above that
Word = Literal["better", "worse", "equivalent", "undecided"]


@dataclass(frozen=True)
class Difference:
    """Mean of n paired differences and the two ends of its 95 % t interval (None where n < 2).

    `p`: two-sided, of the paired t test; None where n < 3, and of unpaired samples.
    """

    mean: float
    interval: tuple[float, float] | None
    n: int
    p: float | None = None

    def is_inside(self, margin: float) -> bool:
        """Whether at least three pairs say that it is no larger."""
        if self.interval is None or self.n < FEWEST:
            return False
        return max(map(abs, self.interval)) <= margin


def margin(metric: Metric, reference: float) -> float:
    """Half width of the range around 0 that counts as no difference to this value: half a point, or
    5 %."""
    return POINTS if is_percentage(metric) else SHARE * abs(reference)


def difference(values: Iterable[float], resolution: float = 0.0) -> Difference:
    """d̄ ± t s/√n of paired differences d, at least one; s is their sample standard deviation,
    t = t_{0.975, n−1}.

    Its p is that of |d̄|√n/max(s, `resolution`): three differences of one step that agree do not
    show that nothing varies, only that it varies by less than a step.
    """
    sample = list(values)
    mean, n = statistics.fmean(sample), len(sample)
    if n < 2:
        return Difference(mean, None, n)
    spread, root = statistics.stdev(sample), math.sqrt(n)
    half = t_quantile(n - 1) * spread / root
    error = max(spread, resolution) / root
    p = two_sided_p(mean, error, n - 1) if n >= FEWEST else None
    return Difference(mean, (mean - half, mean + half), n, p)


def unpaired_difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """b̄ − ā with Welch's 95 % interval: ± t_{0.975, ν} s, s² = s_a²/n_a + s_b²/n_b,
    ν = s⁴ / (s_a⁴/(n_a²(n_a − 1)) + s_b⁴/(n_b²(n_b − 1))); no interval where one has n < 2.

    `n` is that of the smaller sample; neither is empty.
    """
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


def word(
    found: Difference,
    p_holm: float | None,
    p_exact: float | None,
    within: float,
    *,
    better: Better,
    resolution: float = 0.0,
) -> Word:
    """One word for a paired difference of what is measured in steps of `resolution`.

    1. undecided: fewer than 3 pairs.
    2. equivalent: the whole 95 % interval lies inside ±`within`; undecided where one step does not.
    3. better or worse, by the sign: `found.p` <= 0.05/3, `p_holm`, which is that adjusted over the
       table, <= 0.05 and, where there is one (n >= 6), `p_exact` <= 0.05.
    4. undecided: anything else.
    """
    if found.interval is None or found.p is None or p_holm is None:
        return "undecided"
    if found.is_inside(within):
        return "undecided" if 0 < within <= resolution else "equivalent"
    if found.p > LEVEL / QUANTITIES or p_holm > LEVEL or (p_exact or 0.0) > LEVEL:
        return "undecided"
    return "better" if (found.mean < 0) == (better == "smaller") else "worse"


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided p: the share of the 2^n sign patterns s with |Σ s_i d_i| ≥ |Σ d_i|.

    Under "which of the two is which is a coin toss", every pattern is equally likely, so that
    P(p ≤ α) ≤ α whatever the differences are distributed like; with drawn patterns too, since the
    one that was seen counts among them. None for fewer than 6 pairs. (1, 2, 3, 4, 5, 6) gives 2/64.
    """
    d = np.asarray(differences, np.float64)
    if len(d) < FEWEST_TESTED:
        return None
    seen = 0
    if len(d) <= MOST_COUNTED:
        patterns = np.arange(2 ** len(d))[:, None]
        signs = 1.0 - 2.0 * (patterns >> np.arange(len(d)) & 1)
    else:
        random, seen = np.random.default_rng(0), 1  # seeded, so that reports repeat
        signs = random.choice([-1.0, 1.0], (DRAWS, len(d)))
    bound = abs(d.sum()) - 1e-9 * np.abs(d).sum()  # equal sums may differ by rounding
    hits = int((np.abs(signs @ d) >= bound).sum())
    return (hits + seen) / (len(signs) + seen)


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
