"""The measured exponent: a slope on log axes, with an interval over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True)
class Slope:
    """d log E[measure]/d log T, and the ends of its 95 % interval; NaN where a mean is not > 0."""

    value: float
    low: float
    high: float


def log_slope(horizons: Sequence[int], values: Sequence[float] | np.ndarray) -> float:
    """The least-squares slope of log values on log T; NaN unless all values are > 0."""
    if np.min(values) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(horizons), np.log(values), 1)[0])


def measured_slope(horizons: Sequence[int], values: np.ndarray) -> Slope:
    """The slope of the mean over seeds: the theorems are about expectations.

    The interval is the jackknife's: with s_i the slope without seed i and s̄ their mean,
    slope ± t_{n−1} · sqrt((n−1)/n Σ (s_i − s̄)²). Batches of one seed are alike for every T, so
    that seeds, not single runs, are the independent units.

    Args:
        horizons: the T's, ≥ 2 of them.
        values: [len(horizons), n], a column a seed, n ≥ 2.
    """
    n = values.shape[1]
    slope = log_slope(horizons, values.mean(axis=1))
    left_out = np.array(
        [log_slope(horizons, np.delete(values, i, axis=1).mean(axis=1)) for i in range(n)]
    )
    spread = np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum())
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * spread)
    return Slope(slope, slope - half, slope + half)
