"""Projected gradient ascent on the regularised objective: the paper's own adversary."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments, schedules
from robustmd.adversary.base import Adversary
from robustmd.adversary.regularizers import KL, L2, Regularizer
from robustmd.adversary.simplex import project_simplex
from robustmd.adversary.steps import StepName, TheoryStep, make_step


class ProjectedAscent(Adversary):
    """Algorithm 2 of Qian et al. (AAAI-19): Mixture-Opt (`L2()`) and Mixture-OT (`EntropicOT()`).

        p_{t+1} = Π_Δ(p_t + η_t ĥᵗ),    ĥᵗ = ∇_p [p·f̂ᵗ − (λ/2) D(p‖q)] at p_t,    p₁ uniform

        step = "theory":    η_t = 1/(λ(t + c))    Theorem 3; with c = 0 Theorem 2
        step = "constant":  η_t = eta

    c = "auto" is Corollary 1's constant. Its μ, the bound on ‖ĥᵗ‖₂, comes from the first losses
    unless it is given: μ = ‖f̂¹‖₂ + λ max_{p∈Δ} ‖p − q‖₂. For entropic transport the theory's step
    is a heuristic.

    | symbol | argument    | range                                                             |
    |--------|-------------|-------------------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                               |
    | D      | regularizer | `L2()` or `EntropicOT()` (`KL()` belongs to `MirrorAscent`)       |
    | λ      | lam         | > 0; small follows the worst domain, large stays near the prior   |
    | c      | c           | ≥ 0, or "auto"                                                    |
    | μ      | mu          | > 0, or None: from the first losses                               |
    | T      | total_steps | ≥ 1, the number of updates to come; "auto" needs it               |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default uniform                    |
    | η      | eta         | > 0; the constant step needs it                                   |

    A value out of range raises a ValueError.
    """

    def __init__(
        self,
        num_domains: int,
        regularizer: Regularizer,
        lam: float,
        *,
        c: float | Literal["auto"] = "auto",
        mu: float | None = None,
        total_steps: int | None = None,
        prior: Sequence[float] | None = None,
        step: StepName = "theory",
        eta: float | None = None,
    ) -> None:
        super().__init__(num_domains, prior)
        if isinstance(regularizer, KL):
            raise ValueError("KL() has no gradient at the simplex's border: use MirrorAscent.")
        regularizer.prepare(num_domains)
        self.regularizer = regularizer
        self.lam = arguments.positive("lam", lam)
        self.step = make_step(step, self.lam, c=c, mu=mu, total_steps=total_steps, eta=eta)
        # max_{p∈Δ} ‖p − q‖₂ is reached at a vertex: the one where q is smallest.
        self.reach = math.sqrt(1 - 2 * min(self.q) + sum(weight**2 for weight in self.q))

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        payoff, h = self.regularizer.evaluate(f, self.p, self.prior, self.lam)
        if isinstance(self.step, TheoryStep) and self.step.needs_mu:
            mu = torch.linalg.vector_norm(f) + self.lam * self.reach
            self.step.calibrate(mu, self.steps)
        return project_simplex(self.step.move(self.p, self._aim(f, h), self.steps)), payoff, h

    def _aim(self, f: Tensor, h: Tensor) -> Tensor:
        """The direction in which p moves: ĥᵗ itself."""
        return h

    def regret_bound(self, mu: float, total_steps: int) -> float | None:
        """R(c; μ) of Theorem 3 with μ = max_t ‖ĥᵗ‖₂: for L2 and the theory's step; else None."""
        if not isinstance(self.regularizer, L2) or not isinstance(self.step, TheoryStep):
            return None
        return schedules.regret_bound(float(self.step.c), mu, self.lam, total_steps)
