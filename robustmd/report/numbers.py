"""How numbers are printed: accuracies and losses as the paper does, with the spread where n > 1."""

import math

from robustmd.report.estimate import Estimate, SpreadKind


def estimate_texts(
    value: Estimate, *, is_loss: bool, spread: SpreadKind = "std"
) -> tuple[str, str | None]:
    """Mean and spread with the same decimals: ("84.00", "5.29"); no spread where n = 1."""
    decimals = _loss_decimals(value.mean) if is_loss else 2
    width = value.spread(spread)
    return f"{value.mean:.{decimals}f}", None if width is None else f"{width:.{decimals}f}"


def estimate_text(value: Estimate, *, is_loss: bool, spread: SpreadKind = "std") -> str:
    """ "84.00 ± 5.29"; without the spread where n = 1."""
    mean, width = estimate_texts(value, is_loss=is_loss, spread=spread)
    return mean if width is None else f"{mean} ± {width}"


def difference_text(value: float, *, is_loss: bool) -> str:
    """A signed difference: "+1.25", "−0.031" (with a minus sign, not a hyphen)."""
    decimals = _loss_decimals(value) if is_loss else 2
    text = f"{value:+.{decimals}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else text[1:]


def p_text(p: float) -> str:
    """Two significant digits: "0.031"; "<0.0001" below that."""
    if p < 1e-4:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.{1 - math.floor(math.log10(p))}f}"


def _loss_decimals(value: float) -> int:
    """Three decimals, more (up to six) where that leaves fewer than two significant digits."""
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return 3
    return min(6, max(3, 1 - math.floor(math.log10(size))))
