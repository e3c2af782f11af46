"""Mean and spread over seeds, differences between them, and the rule of docs/statistics.md: better,
worse, equivalent or undecided. Light: `robustmd report --help` loads it."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from robustmd.registry import Metric
from robustmd.report.sheet import NOTHING, Cell, Mark

SpreadKind = Literal["std", "sem", "ci95"]
SPREADS: tuple[SpreadKind, ...] = get_args(SpreadKind)
SPREAD_WORDS: dict[SpreadKind, str] = {
    "std": "sample standard deviation over n seeds (ddof = 1)",
    "sem": "standard error of the mean over n seeds (s/sqrt n)",
    "ci95": "half width of the 95 % t interval of the mean over n seeds",
}
DIGITS = 2  # significant ones, at least, with up to six decimals

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
class Estimate:
    """Mean of n >= 1 values and their sample standard deviation; `std` is None where n = 1."""

    mean: float
    std: float | None
    n: int

    def spread(self, kind: SpreadKind) -> float | None:
        """What stands behind ±; None where n = 1. s = 5.29, n = 3: sem 3.06, ci95 13.1."""
        if self.std is None or kind == "std":
            return self.std
        standard_error = self.std / math.sqrt(self.n)
        return standard_error if kind == "sem" else t_quantile(self.n - 1) * standard_error


def estimate(values: Iterable[float]) -> Estimate:
    """mean = Σx/n, std = sqrt(Σ(x − mean)²/(n − 1)); (80, 82, 90) gives 84.0 and 5.29. At least one
    value."""
    sample = list(values)
    spread = statistics.stdev(sample) if len(sample) > 1 else None
    return Estimate(statistics.fmean(sample), spread, len(sample))


def t_quantile(degrees: float) -> float:
    """t_{0.975, degrees} of Student's distribution, degrees > 0."""
    from scipy import special  # noqa: PLC0415 - only where a report has an interval

    return float(special.stdtrit(degrees, 1 - LEVEL / 2))


def is_percentage(metric: Metric) -> bool:
    """Whether its values go in steps of an example."""
    return metric.unit == "%"


def value_text(metric: Metric, value: float, like: float | None = None) -> str:
    """ "84.00"; with as many decimals as `like` has, where it is given."""
    return f"{value:.{_decimals(metric, value if like is None else like)}f}"


def difference_text(metric: Metric, value: float) -> str:
    """A signed difference: "+1.25", "−0.031" (with a minus sign, not a hyphen)."""
    text = f"{value:+.{_decimals(metric, value)}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else text[1:]


def _decimals(metric: Metric, value: float) -> int:
    size = abs(value)
    if is_percentage(metric) or size == 0 or not math.isfinite(size):
        return metric.decimals
    return min(6, max(metric.decimals, DIGITS - 1 - math.floor(math.log10(size))))


def estimate_cell(
    value: Estimate, metric: Metric, spread: SpreadKind = "std", mark: Mark = ""
) -> Cell:
    """Mean and spread with the same decimals: 84.00 beside 5.29; no spread where n = 1, and nothing
    where a value is not known."""
    if not math.isfinite(value.mean):
        return Cell(NOTHING, (None, None))
    width = value.spread(spread)
    beside = "" if width is None else value_text(metric, width, like=value.mean)
    return Cell(value_text(metric, value.mean), (value.mean, width), beside, mark)


def csv_values(name: str, value: Estimate, spread: SpreadKind) -> dict[str, float | None]:
    """Mean and spread as a CSV file has them, by the names of their columns."""
    known = math.isfinite(value.mean)
    mean, width = (value.mean, value.spread(spread)) if known else (None, None)
    return {f"{name}_mean": mean, f"{name}_{spread}": width}


def seconds_text(seconds: float) -> str:
    """ "0.8 s", "42 s", "17 min", "2.3 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def range_text(counts: Iterable[int]) -> str:
    """ "3"; "3–5" where not all are the same."""
    found = sorted(set(counts))
    return "–".join(map(str, dict.fromkeys((found[0], found[-1]))))


@dataclass(frozen=True)
class Difference:
    """Mean of n paired differences and the two ends of its 95 % t interval (None where n < 2).

    `p`: two-sided, of the paired t test; None where n < 3.
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
    p = _two_sided_p(mean, max(spread, resolution) / root, n - 1) if n >= FEWEST else None
    return Difference(mean, (mean - half, mean + half), n, p)


def _two_sided_p(mean: float, error: float, degrees: int) -> float:
    """P(|t| ≥ |mean|/error) of Student's distribution; 1 where the mean is 0."""
    from scipy import special  # noqa: PLC0415 - only where a report has a p

    if mean == 0:
        return 1.0
    return float(2 * special.stdtr(degrees, -abs(mean) / error)) if error > 0 else 0.0


def word(
    found: Difference,
    p_holm: float | None,
    p_exact: float | None,
    within: float,
    *,
    better: Literal["smaller", "larger"],
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
    import numpy as np  # noqa: PLC0415 - not for --help

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
