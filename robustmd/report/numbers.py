"""How the numbers of a metric are printed, and which differences count as none: by what it was
registered with. A percentage counts examples; whatever else is measured on a scale of its own."""

import math
from collections.abc import Iterable

from robustmd.registry import Metric
from robustmd.report.estimate import Estimate, SpreadKind
from robustmd.report.sheet import Cell, Mark

POINTS = 0.5  # of a percentage: nobody would choose a method for less
SHARE = 0.05  # of any other reference
DIGITS = 2  # significant ones, at least, with up to six decimals


def is_percentage(metric: Metric) -> bool:
    """Whether its values go in steps of an example."""
    return metric.unit == "%"


def step_unit(metric: Metric) -> str:
    """Of a difference of two values: "points", "nats"."""
    return "points" if is_percentage(metric) else metric.unit


def margin(metric: Metric, reference: float) -> float:
    """Half width of the range around 0 that counts as no difference to this value: half a point, or
    5 %."""
    return POINTS if is_percentage(metric) else SHARE * abs(reference)


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
    """Mean and spread with the same decimals: 84.00 beside 5.29; no spread where n = 1."""
    width = value.spread(spread)
    beside = "" if width is None else value_text(metric, width, like=value.mean)
    return Cell(value_text(metric, value.mean), (value.mean, width), beside, mark)


def estimate_text(value: Estimate, metric: Metric, spread: SpreadKind = "std") -> str:
    """ "84.00 ± 5.29"; without the spread where n = 1."""
    return estimate_cell(value, metric, spread).whole()


def p_text(p: float) -> str:
    """Two significant digits: "0.031"; "<0.0001" below that."""
    if p < 1e-4:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.{1 - math.floor(math.log10(p))}f}"


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
