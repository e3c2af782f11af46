"""The loss that is built in, one number for each example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.registry import loss

if TYPE_CHECKING:
    from torch import Tensor


@loss("cross_entropy", unit="nats")
def cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """[n]: −Σ_c q_c log softmax(z)_c with q_c = (1 − ε)[c = label] + ε/C over the C classes that
    the domain has: those whose logits are not −inf.

    Args:
        logits: z, float [n, C].
        labels: int64 [n].
        smoothing: ε in [0, 1).
    """
    from torch.nn import functional  # noqa: PLC0415 - settings are checked without torch

    hard = functional.cross_entropy(logits, labels, reduction="none")
    if not smoothing:
        return hard
    there = logits > -float("inf")
    even = -logits.log_softmax(1).where(there, 0.0).sum(1) / there.sum(1)
    return (1 - smoothing) * hard + smoothing * even
