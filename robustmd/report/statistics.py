"""Mean and spread over seeds, differences between them, and the rule of docs/statistics.md: better,
worse, equivalent or undecided."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

SPREADS = {
    "std": "sample standard deviation over n seeds (ddof = 1)",
    "sem": "standard error of the mean over n seeds (s/sqrt n)",
    "ci95": "half width of the 95 % t interval of the mean over n seeds",
}
VERDICTS = ("better", "equivalent", "undecided", "worse")
POINTS = 0.5  # of a percentage: nobody would choose a method for less
SHARE = 0.05  # of any other reference
LEVEL = 0.05
FEWEST = 3  # pairs that decide anything: two can agree by chance
QUANTITIES = 3  # a method is compared in so many, each at a third of the level
FEWEST_TESTED = 6  # pairs: below, no outcome has p < 0.05, since the smallest is 2/2^n
MOST_COUNTED = 16  # pairs for which all 2^n sign patterns are counted
DRAWS = 100_000  # sign patterns drawn above that


def spread(std: Any, n: Any, kind: str) -> Any:
    """What stands behind ±, of one number or of a table; NaN where n = 1.

    s = 5.29, n = 3: sem 3.06, ci95 13.1.
    """
    if kind == "std":
        return std
    factor = 1.0 if kind == "sem" else special.stdtrit(n - 1, 1 - LEVEL / 2)
    return std * factor / np.sqrt(n)


def difference(values: Sequence[float], resolution: float = 0.0) -> dict[str, float]:
    """d̄ ± t s/√n of n ≥ 1 paired differences d: `difference`, `ci95_low`, `ci95_high` (NaN where
    n < 2), `n`, `p_t` and `p_exact`.

    p_t is that of |d̄|√n/max(s, `resolution`), NaN where n < 3: three differences of one step that
    agree do not show that nothing varies, only that it varies by less than a step.
    """
    d = np.asarray(values, float)
    n, mean = len(d), float(d.mean())
    std = float(d.std(ddof=1)) if n > 1 else np.nan
    half, p = spread(std, n, "ci95") if n > 1 else np.nan, np.nan
    if n >= FEWEST:
        error = max(std, resolution) / np.sqrt(n)
        t = 0.0 if mean == 0 else abs(mean) / error if error > 0 else np.inf
        p = float(2 * special.stdtr(n - 1, -t))
    return {
        "difference": mean,
        "ci95_low": mean - half,
        "ci95_high": mean + half,
        "n": n,
        "p_t": p,
        "p_exact": sign_flip_p(d),
    }


def sign_flip_p(differences: Sequence[float] | np.ndarray) -> float:
    """Two-sided p: the share of the 2^n sign patterns s with |Σ s_i d_i| ≥ |Σ d_i|.

    Under "which of the two is which is a coin toss", every pattern is equally likely, so that
    P(p ≤ α) ≤ α whatever the differences are distributed like; with drawn patterns too, since the
    one that was seen counts among them. NaN for fewer than 6 pairs. (1, 2, 3, 4, 5, 6) gives 2/64.
    """
    d = np.asarray(differences, np.float64)
    if len(d) < FEWEST_TESTED:
        return np.nan
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


def holm(p_values: Sequence[float] | pd.Series) -> pd.Series:
    """Holm's step-down adjustment over those that are there: with m of them in ascending order,
    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)). (0.01, 0.04, 0.03) gives (0.03, 0.06, 0.06)."""
    p = pd.Series(p_values, dtype=float)
    ascending = p.dropna().sort_values()
    adjusted = ascending * np.arange(len(ascending), 0, -1)
    return adjusted.clip(upper=1).cummax().reindex(p.index)


def margin(reference: float, *, percent: bool) -> float:
    """Half width of the range around 0 that counts as no difference to this value: half a point, or
    5 %."""
    return POINTS if percent else SHARE * abs(reference)


def with_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """The same comparisons, all of one table, with `p_holm`, `verdict`, and `coarse`: inside the
    margin, but one step of what is measured (`resolution`) is not.

    1. undecided: fewer than 3 pairs.
    2. equivalent: the whole 95 % interval lies inside ±`margin`; undecided where one step does not.
    3. better or worse, by the sign: p_t ≤ 0.05/3, p_holm, which is that adjusted over the table,
       ≤ 0.05 and, where there is one (n ≥ 6), p_exact ≤ 0.05.
    4. undecided: anything else.
    """
    p, p_holm, within = table["p_t"], holm(table["p_t"]), table["margin"]
    ends = np.maximum(table["ci95_low"].abs(), table["ci95_high"].abs())
    is_inside = p.notna() & (ends <= within)
    is_coarse = (within > 0) & (table["resolution"] >= within)
    is_sure = (p <= LEVEL / QUANTITIES) & (p_holm <= LEVEL) & ~(table["p_exact"] > LEVEL)
    is_better = (table["difference"] < 0) == (table["better"] == "smaller")
    chosen = [is_inside & ~is_coarse, is_inside, is_sure & is_better, is_sure]
    words = np.select(chosen, ["equivalent", "undecided", "better", "worse"], "undecided")
    return table.assign(p_holm=p_holm, verdict=words, coarse=is_inside & is_coarse)
