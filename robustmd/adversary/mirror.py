"""Mirror ascent on the KL-regularised objective."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from robustmd.adversary import arguments, schedules
from robustmd.adversary.base import Adversary
from robustmd.adversary.regularizers import KL
from robustmd.adversary.simplex import finite_log
from robustmd.adversary.steps import Constant, StepName, TheoryStep, make_step, spread


class MirrorAscent(Adversary):
    """The remark of Qian et al. (AAAI-19) on other strongly convex regularizers, for KL(p‖q).

        log(p/q) ← log(p/q) + η_t ĥᵗ, normalised,    ĥᵗ = f̂ᵗ − (λ/2) log(p_t/q)

        step = "theory":    η_t = 2/(λ(t + c)), for (λ/2)KL is λ/2-strongly convex in ‖·‖₁; that is
                            log(p/q) ← (1 − 1/(t + c)) log(p/q) + 2/(λ(t + c)) f̂ᵗ
        step = "constant":  η_t = eta

    p₁ is uniform on the prior's support; q_k = 0 pins p_k = 0. c = "auto" minimises the proved
    bound (`schedules.kl_optimal_c`). Its μ_∞, the bound on ‖ĥᵗ‖_∞, comes from the first losses
    unless it is given: 2 max f̂¹ + (λ/2) max |log(p₁/q)|; for c = "centred" half of how far each of
    the two ranges takes the place of its largest value, since neither the step nor the regret sees
    a constant added to ĥ.

    | symbol | argument    | range                                                           |
    |--------|-------------|-----------------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                             |
    | λ      | lam         | > 0; small follows the worst domain, large stays near the prior |
    | c      | c           | ≥ 0, "auto" or "centred"                                        |
    | μ_∞    | mu          | > 0, or None: from the first losses                             |
    | T      | total_steps | ≥ 1, the number of updates to come; both words need it          |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default uniform                  |
    | η      | eta         | > 0; the constant step needs it                                 |
    """

    log_prior: Tensor
    log_ratio: Tensor

    def __init__(
        self,
        num_domains: int,
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
        self.regularizer = KL()
        self.lam = arguments.positive("lam", lam)
        support = [weight for weight in self.q if weight > 0]
        self.support_size = len(support)
        logs = [math.log(weight * len(support)) for weight in support]  # −log(p₁/q)
        self.reach = max(map(abs, logs))
        self.centred_reach = (max(logs) - min(logs)) / 2
        # c*(μ_∞/√(log K), λ/2, T); a single domain has nothing to learn and any root does.
        self.root_log = math.sqrt(math.log(len(support))) or 1.0
        scaled_mu = None if mu is None else arguments.positive("mu", mu) / self.root_log
        self.step = make_step(
            step, self.lam / 2, c=c, mu=scaled_mu, total_steps=total_steps, eta=eta
        )
        self._start_on_support()
        self.register_buffer("log_prior", finite_log(self.prior), persistent=False)
        self.register_buffer("log_ratio", finite_log(self.p) - self.log_prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Where q pins p_k = 0, h_k = f_k moves nothing: log p_k stays at `finite_log(0)`.
        h = torch.sub(f, self.log_ratio, alpha=self.lam / 2)
        payoff = torch.dot(self.p, h)  # D = p·log(p/q), so that p·f − (λ/2) D = p·h
        if isinstance(self.step, TheoryStep) and self.step.needs_mu:
            if self.step.is_centred:
                mu = spread(f, torch.inf) * 2 + self.lam / 2 * self.centred_reach
            else:
                mu = f.abs().amax() * 2 + self.lam / 2 * self.reach
            self.step.calibrate(mu / self.root_log, self.steps)
        # The state is log(p/q), not p: a weight that underflows to 0 can come back.
        log_p = torch.log_softmax(
            self.step.move(self.log_ratio, h, self.steps) + self.log_prior, dim=0
        )
        self.log_ratio.copy_(log_p - self.log_prior)
        return log_p.exp(), payoff, h

    def regret_bound(self, mu: float, total_steps: int) -> float | None:
        """R_KL(c; μ_∞) with the theory's step; None with the constant one.

        μ_∞ = max_t ‖ĥᵗ‖_∞, or half of max ĥᵗ − min ĥᵗ.
        """
        if not isinstance(self.step, TheoryStep):
            return None
        c = float(self.step.c)
        return schedules.kl_regret_bound(c, mu, self.lam, total_steps, self.support_size)
