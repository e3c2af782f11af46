"""Agnostic federated learning: projected ascent without a regularizer."""

import torch
from torch import Tensor

from robustmd.adversary.ascent import ProjectedAscent
from robustmd.adversary.regularizers import NoRegularizer


class AgnosticAscent(ProjectedAscent):
    """Stochastic-AFL of Mohri, Sivek and Suresh, *Agnostic Federated Learning* (ICML 2019).

        p_{t+1} = Π_Δ(p_t + γ_λ f̂ᵗ),    p₁ uniform,    returns p̄ = (1/T) Σ_t p_t (and the loop W̄)

    The paper calls the mixture weights λ; here they are p, and Λ is the whole simplex Δ.

    | symbol | argument    | range |
    |--------|-------------|-------|
    | p      | num_domains | ≥ 1   |
    | γ_λ    | eta         | > 0   |

    A value out of range raises a ValueError.
    """

    p_sum: Tensor

    def __init__(self, num_domains: int, *, eta: float) -> None:
        # λ = 1 multiplies nothing.
        super().__init__(num_domains, NoRegularizer(), 1.0, step="constant", eta=eta)
        self.register_buffer("p_sum", torch.zeros_like(self.p))

    @property
    def average(self) -> Tensor:
        """p̄ = (1/T) Σ_t p_t over the updates so far [K]; NaN before the first."""
        return self.p_sum / self.steps

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.p_sum.add_(self.p)
        return super()._respond(f)
