"""How numbers are printed: accuracies and losses as the paper does, with the spread where n > 1."""

import math

from robustmd.report.estimate import Estimate


def estimate_texts(value: Estimate, *, is_loss: bool) -> tuple[str, str | None]:
    """Mean and spread with the same decimals: ("84.00", "5.29"); no spread where n = 1."""
    decimals = _loss_decimals(value.mean) if is_loss else 2
    spread = None if value.std is None else f"{value.std:.{decimals}f}"
    return f"{value.mean:.{decimals}f}", spread


def estimate_text(value: Estimate, *, is_loss: bool) -> str:
    """ "84.00 ± 5.29"; without the spread where n = 1."""
    mean, spread = estimate_texts(value, is_loss=is_loss)
    return mean if spread is None else f"{mean} ± {spread}"


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
