"""Mean and spread over seeds, and how a number of a metric is printed."""

import math
import statistics
from collections.abc import Iterable
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
CONFIDENCE = 0.95
DIGITS = 2  # significant ones, at least, with up to six decimals


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


def t_quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """t_{(1 + confidence)/2, degrees} of Student's distribution, degrees > 0."""
    from scipy import special  # noqa: PLC0415 - only where a report has an interval

    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def two_sided_p(mean: float, error: float, degrees: float) -> float:
    """P(|t| ≥ |mean|/error) of Student's distribution; 1 where the mean is 0."""
    from scipy import special  # noqa: PLC0415 - only where a report has a p

    if mean == 0:
        return 1.0
    return float(2 * special.stdtr(degrees, -abs(mean) / error)) if error > 0 else 0.0


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
