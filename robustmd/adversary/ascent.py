"""Projected gradient ascent: the paper's own adversary, and rules that change one thing of it."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from robustmd.adversary import arguments, schedules
from robustmd.adversary.base import Adversary, Averaged
from robustmd.adversary.regularizers import KL, L2, NoRegularizer, Regularizer
from robustmd.adversary.simplex import project_simplex
from robustmd.adversary.steps import Constant, StepName, TheoryStep, make_step, spread


class ProjectedAscent(Adversary):
    """Algorithm 2 of Qian et al. (AAAI-19): Mixture-Opt (`L2()`) and Mixture-OT (`EntropicOT()`).

        p_{t+1} = Π_Δ(p_t + η_t ĥᵗ),    ĥᵗ = ∇_p [p·f̂ᵗ − (λ/2) D(p‖q)] at p_t,    p₁ uniform

        step = "theory":    η_t = 1/(λ(t + c))    Theorem 3; with c = 0 Theorem 2
        step = "constant":  η_t = eta

    c = "auto" is Corollary 1's constant. Its μ, the bound on ‖ĥᵗ‖₂, comes from the first losses
    unless it is given: μ = ‖f̂¹‖₂ + λ max_{p∈Δ} ‖p − q‖₂. c = "centred" takes ‖f̂¹ − mean f̂¹‖₂ in
    the place of ‖f̂¹‖₂: neither the projection nor the regret sees a constant added to all losses,
    so the same proof holds with μ = max_t ‖ĥᵗ − mean ĥᵗ‖₂, and c no longer depends on the losses'
    level. For entropic transport the theory's step is a heuristic.

    | symbol | argument    | range                                                             |
    |--------|-------------|-------------------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                               |
    | D      | regularizer | `L2()` or `EntropicOT()` (`KL()` belongs to `MirrorAscent`)       |
    | λ      | lam         | > 0; small follows the worst domain, large stays near the prior   |
    | c      | c           | ≥ 0, "auto" or "centred"                                          |
    | μ      | mu          | > 0, or None: from the first losses                               |
    | T      | total_steps | ≥ 1, the number of updates to come; both words need it            |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default uniform                    |
    | η      | eta         | > 0; the constant step needs it                                   |
    """

    def __init__(
        self,
        num_domains: int,
        regularizer: Regularizer,
        lam: float,
        *,
        c: Constant = "auto",
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
            length = spread(f, 2) if self.step.is_centred else torch.linalg.vector_norm(f)
            self.step.calibrate(length + self.lam * self.reach, self.steps)
        return project_simplex(self.step.move(self.p, self._aim(f, h), self.steps)), payoff, h

    def _aim(self, f: Tensor, h: Tensor) -> Tensor:
        """The direction in which p moves: ĥᵗ itself."""
        return h

    def regret_bound(self, mu: float, total_steps: int) -> float | None:
        """R(c; μ) of Theorem 3, for L2 and the theory's step; else None.

        μ = max_t ‖ĥᵗ‖₂, or the same of ĥᵗ − mean ĥᵗ.
        """
        if not isinstance(self.regularizer, L2) or not isinstance(self.step, TheoryStep):
            return None
        return schedules.regret_bound(float(self.step.c), mu, self.lam, total_steps)


class AgnosticAscent(Averaged, ProjectedAscent):
    """Stochastic-AFL of Mohri, Sivek and Suresh, *Agnostic Federated Learning* (ICML 2019).

        p_{t+1} = Π_Δ(p_t + γ_λ f̂ᵗ),    p₁ uniform,    returns p̄ = (1/T) Σ_t p_t (and the loop W̄)

    The paper calls the mixture weights λ; here they are p, and Λ is the whole simplex Δ.

    | symbol | argument    | range |
    |--------|-------------|-------|
    | p      | num_domains | ≥ 1   |
    | γ_λ    | eta         | > 0   |
    """

    def __init__(self, num_domains: int, *, eta: float) -> None:
        # λ = 1 multiplies nothing.
        super().__init__(num_domains, NoRegularizer(), 1.0, step="constant", eta=eta)


class ExcessAscent(ProjectedAscent):
    """`ProjectedAscent` on the excess f_k − f*_k over the best loss that domain k can have.

        min_W max_{p∈Δ} p·(f(W) − f*) − (λ/2) D(p‖q)

    Minimax regret, as Agarwal and Zhang, *Minimax Regret Optimization* (COLT 2022) have it for
    distributions: a domain whose labels are noise has a large f_k, but nothing that could be gained
    on it, and no longer rules. With f* = 0 this is `ProjectedAscent`.

    | symbol | argument  | range                                                          |
    |--------|-----------|----------------------------------------------------------------|
    | f*     | reference | K numbers: the losses of models that each saw one domain alone |

    The other arguments are those of `ProjectedAscent`, whose μ is here a bound for the excess.
    """

    reference: Tensor

    def __init__(self, *args: Any, reference: Sequence[float], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        best = arguments.one_per_domain("reference", reference, self.num_domains)
        self.register_buffer("reference", self.p.new_tensor(best), persistent=False)

    def _observe(self, losses: Tensor, present: Tensor | None) -> Tensor:
        return super()._observe(losses, present) - self.reference


class OptimisticAscent(ProjectedAscent):
    """`ProjectedAscent` on 2f̂ᵗ − f̂ᵗ⁻¹ in place of f̂ᵗ.

        p_{t+1} = Π_Δ(p_t + η_t (ĥᵗ + f̂ᵗ − f̂ᵗ⁻¹)),    f̂⁰ = f̂¹

    Optimistic gradient ascent with one sequence (Daskalakis, Ilyas, Syrgkanis and Zeng, ICLR 2018;
    Mokhtari, Ozdaglar and Pattathil, AISTATS 2020): descent against plain ascent spirals away from
    a saddle point, and the correction f̂ᵗ − f̂ᵗ⁻¹ takes that drift away. Only the losses are
    extrapolated: the regularizer's gradient is known. The arguments are those of
    `ProjectedAscent`; no bound on the regret is proved with the theory's step.
    """

    last: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("last", torch.full_like(self.p, torch.nan))

    def _aim(self, f: Tensor, h: Tensor) -> Tensor:
        # Iteration 1 has no f̂⁰: a choice on the device, so that the host need not know t.
        aim = h + f - torch.where(self.steps == 1, f, self.last)
        self.last.copy_(f)
        return aim

    def regret_bound(self, mu: float, total_steps: int) -> None:
        return None
