"""Which λ would have kept every domain in play."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.precision import precise_dtype
from robustmd.adversary.regularizers import L2, NoRegularizer, Regularizer
from robustmd.adversary.simplex import effective_number

_DOUBLINGS = 60  # λ is sought from 2^-60 to 2^60 times the spread of the losses


def lam_keeping_all_in_play(
    regularizer: Regularizer,
    losses: Sequence[float] | Tensor,
    prior: Sequence[float] | None = None,
    threshold: float = 1.05,
) -> float | None:
    """The smallest λ at which the best response p* to these losses still plays every domain.

    For L2, p* is interior iff λ > max_k (f̄ − f_k)/q_k, f̄ the mean loss: that maximum is returned.
    For KL and entropic transport p* is always interior; sought is the smallest λ with
    exp(H(p*)) ≥ threshold.

    Args:
        regularizer: D.
        losses: f [K], say the mean losses of the stretch in which one domain had all the weight.
        prior: q [K]; None: uniform.
        threshold: above 1, the effective number of domains that is enough.

    Returns:
        λ ≥ 0 (0: any does), or None where none does.
    """
    device = next(regularizer.buffers(), torch.empty(0)).device  # of a transport cost
    f = torch.as_tensor(losses, dtype=precise_dtype(device), device=device)
    q = torch.tensor(arguments.distribution("prior", prior, len(f)), dtype=f.dtype, device=device)
    if isinstance(regularizer, NoRegularizer):
        return None
    if isinstance(regularizer, L2):
        return _interior_l2(f, q)
    return _smallest_lam(regularizer, f, q, threshold)


def _interior_l2(f: Tensor, q: Tensor) -> float | None:
    shortfall = f.mean() - f
    if bool(((q == 0) & (shortfall >= 0)).any()):
        return None  # p*_k = q_k + (f_k − f̄)/λ ≤ 0 for every λ
    return max(0.0, float((shortfall[q > 0] / q[q > 0]).max()))


def _smallest_lam(regularizer: Regularizer, f: Tensor, q: Tensor, threshold: float) -> float | None:
    def enough(lam: float) -> bool:
        return float(effective_number(regularizer.best_response(f, q, lam))) >= threshold

    spread = float(f.max() - f.min()) or 1.0
    # exp(H(p*)) need not rise all the way (q may be narrow itself): find the first λ, then bisect.
    grid = [spread * 2.0**k for k in range(-_DOUBLINGS, _DOUBLINGS + 1)]
    first = next((i for i, lam in enumerate(grid) if enough(lam)), None)
    if first is None:
        return None
    if first == 0:
        return 0.0
    low, high = grid[first - 1], grid[first]
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
