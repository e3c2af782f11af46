"""Regularizers D(p‖q) that keep the adversary near the prior: none, L2 and KL.

Each gives what the adversary's objective p·f − (λ/2) D(p‖q) over p ∈ Δ needs: D itself, the
objective's gradient (up to a constant, which a projection onto Δ ignores), its maximizer and its
maximum. Entropic optimal transport is in `transport.py`.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.precision import PreciseModule, precise_dtype
from robustmd.adversary.simplex import effective_number, project_simplex

_DOUBLINGS = 60  # λ is sought from 2^-60 to 2^60 times the spread of the losses


class Regularizer(PreciseModule):
    """D(p‖q), and what follows from it for the objective p·f − (λ/2) D(p‖q).

    Everywhere: p, q distributions [K] and losses f [K], in nats, of one floating dtype (float64
    is meant) and device; lam λ > 0. Results are likewise, without a sync.
    """

    dual_norm: float = 2  # the norm in which its bound measures ĥ
    pins_zero_prior: bool = False  # whether q_k = 0 forces p_k = 0

    def value(self, p: Tensor, q: Tensor) -> Tensor:
        """D(p‖q), a scalar."""
        raise NotImplementedError

    def ascent_direction(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> Tensor:
        """h [K]: the objective's gradient in p, up to a constant."""
        raise NotImplementedError

    def best_response(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """argmax_{p∈Δ} p·f − (λ/2) D(p‖q), [K]."""
        raise NotImplementedError

    def best_value(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """max_{p∈Δ} p·f − (λ/2) D(p‖q), a scalar."""
        p = self.best_response(losses, q, lam)
        return torch.dot(p, losses) - lam / 2 * self.value(p, q)

    def evaluate(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> tuple[Tensor, Tensor]:
        """The objective at p and its ascent direction there, what they share computed once."""
        payoff = torch.dot(p, losses) - lam / 2 * self.value(p, q)
        return payoff, self.ascent_direction(losses, p, q, lam)

    def prepare(self, num_domains: int, device: torch.device | None = None) -> None:
        """Make room for K domains; for those that keep state."""


class NoRegularizer(Regularizer):
    """D = 0: the plain worst case. λ and q have no effect."""

    def value(self, p: Tensor, q: Tensor) -> Tensor:
        return torch.zeros_like(p).sum()

    def ascent_direction(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> Tensor:
        """h = f."""
        return losses

    def best_response(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """All mass on the largest loss, ties shared equally."""
        largest = (losses == losses.amax()).to(losses.dtype)
        return largest / largest.sum()


class L2(Regularizer):
    """D = ‖p − q‖². Any prior; the objective is λ-strongly concave in ‖·‖₂."""

    def value(self, p: Tensor, q: Tensor) -> Tensor:
        return (p - q).square().sum()

    def ascent_direction(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> Tensor:
        """h = f − λ(p − q)."""
        return torch.sub(losses, p - q, alpha=lam)

    def best_response(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """Π_Δ(q + f/λ)."""
        return project_simplex(torch.add(q, losses, alpha=1 / lam))

    def evaluate(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> tuple[Tensor, Tensor]:
        drift = p - q
        payoff = torch.dot(p, losses).sub_(torch.dot(drift, drift), alpha=lam / 2)
        return payoff, torch.sub(losses, drift, alpha=lam)


class KL(Regularizer):
    """D = Σ p_k log(p_k/q_k): (λ/2) D is λ/2-strongly convex in ‖·‖₁.

    A prior with q_k = 0 pins p_k = 0: D is infinite elsewhere.
    """

    dual_norm = torch.inf
    pins_zero_prior = True

    def value(self, p: Tensor, q: Tensor) -> Tensor:
        """Σ p log(p/q), with 0 log 0 = 0; inf where p_k > 0 = q_k."""
        return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum()

    def ascent_direction(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> Tensor:
        """h = f − (λ/2) log(p/q); 0 where q pins p_k = 0, +inf where p_k = 0 is not pinned."""
        h = torch.sub(losses, (p / q).log(), alpha=lam / 2)
        return torch.where(q > 0, h, 0.0)

    def best_response(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """p_k ∝ q_k exp(2 f_k/λ)."""
        return torch.softmax(torch.add(q.log(), losses, alpha=2 / lam), dim=-1)

    def best_value(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """(λ/2) log Σ_k q_k exp(2 f_k/λ)."""
        return torch.logsumexp(torch.add(q.log(), losses, alpha=2 / lam), dim=-1) * (lam / 2)


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
