"""How numbers are printed: accuracies and losses as the paper does, with the spread where n > 1."""

import math

from robustmd.report.estimate import Estimate


def estimate_text(value: Estimate, *, is_loss: bool, plus_minus: str = " ± ") -> str:
    """ "84.00 ± 5.29"; without the spread where n = 1."""
    decimals = _loss_decimals(value.mean) if is_loss else 2
    mean = f"{value.mean:.{decimals}f}"
    return mean if value.std is None else f"{mean}{plus_minus}{value.std:.{decimals}f}"


def difference_text(value: float, *, is_loss: bool) -> str:
    """A signed difference: "+1.25", "−0.031" (with a minus sign, not a hyphen)."""
    decimals = _loss_decimals(value) if is_loss else 2
    text = f"{value:+.{decimals}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else text[1:]


def _loss_decimals(value: float) -> int:
    """Three decimals, more (up to six) where that leaves fewer than two significant digits."""
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return 3
    return min(6, max(3, 1 - math.floor(math.log10(size))))
