"""How numbers are printed: with the decimals of their metric, and the spread where n > 1."""

import math

from robustmd.report.estimate import Estimate, SpreadKind
from robustmd.report.quantities import Metric
from robustmd.report.sheet import Cell, Mark


def estimate_cell(
    value: Estimate, metric: Metric, spread: SpreadKind = "std", mark: Mark = ""
) -> Cell:
    """Mean and spread with the same decimals: 84.00 beside 5.29; no spread where n = 1."""
    width = value.spread(spread)
    beside = "" if width is None else metric.text(width, like=value.mean)
    return Cell(metric.text(value.mean), (value.mean, width), beside, mark)


def estimate_text(value: Estimate, metric: Metric, spread: SpreadKind = "std") -> str:
    """ "84.00 ± 5.29"; without the spread where n = 1."""
    cell = estimate_cell(value, metric, spread)
    return f"{cell.text} ± {cell.beside}" if cell.beside else cell.text


def p_text(p: float) -> str:
    """Two significant digits: "0.031"; "<0.0001" below that."""
    if p < 1e-4:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.{1 - math.floor(math.log10(p))}f}"
