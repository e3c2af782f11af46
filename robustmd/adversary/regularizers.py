"""Regularizers D(p‖q) that keep the adversary near the prior: none, L2 and KL.

Each gives what the adversary's objective p·f − (λ/2) D(p‖q) over p ∈ Δ needs: D itself, the
objective's gradient (up to a constant, which a projection onto Δ ignores), its maximizer and its
maximum. Entropic optimal transport is in `transport.py`.
"""

import torch
from torch import Tensor

from robustmd.adversary.precision import PreciseModule
from robustmd.adversary.simplex import project_simplex


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
