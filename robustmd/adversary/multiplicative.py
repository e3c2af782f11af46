"""Multiplicative weights on the plain worst case, without a regularizer."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments, schedules
from robustmd.adversary.base import Averaged
from robustmd.adversary.precision import default_dtype
from robustmd.adversary.simplex import finite_log
from robustmd.adversary.steps import ConstantStep

_SCHEDULES = {
    "lemma1": schedules.lemma1_adversary_step,
    "theorem1": schedules.theorem1_adversary_step,
}
_SEEN = 1e-6  # ‖f̂‖₂ [nats] up to which it is 0 rounded: no bound, and a step 1/γ beyond all


class MultiplicativeWeights(Averaged):
    """Algorithm 1 of Qian et al. (AAAI-19), after Arora, Hazan and Kale (2012).

        p_{t+1} ∝ p_t exp(η_p f̂ᵗ),    p₁ = q,    returns p̄ = (1/T) Σ_t p_t (and the loop W̄)

        step = "lemma1":    η_p = 2 sqrt(2 log K)/(γ √T)          convex losses
        step = "theorem1":  η_p = (2 sqrt(2 log K)/γ) T^(−2/3)    non-convex losses
        step = "constant":  η_p = eta

    γ, the bound on ‖f̂ᵗ‖₂, comes from the first losses (‖f̂¹‖₂) unless it is given; p stays where it
    starts while they are all 0. Without a regularizer the prior is only where p starts; the paper
    starts at uniform. q_k = 0 pins p_k = 0.

    | symbol | argument    | range                                                     |
    |--------|-------------|-----------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                       |
    |        | step        | "lemma1", "theorem1" or "constant"                        |
    | T      | total_steps | ≥ 1, the number of updates to come; the schedules need it |
    | γ      | gamma       | > 0, or None: from the first losses                       |
    | η_p    | eta         | > 0; the constant step needs it                           |
    | p₁     | prior       | K weights, ≥ 0, that sum to 1; default uniform            |
    """

    eta: Tensor
    log_p: Tensor

    def __init__(
        self,
        num_domains: int,
        *,
        step: Literal["lemma1", "theorem1", "constant"] = "lemma1",
        total_steps: int | None = None,
        gamma: float | None = None,
        eta: float | None = None,
        prior: Sequence[float] | None = None,
    ) -> None:
        super().__init__(num_domains, prior)
        arguments.one_of("step", step, ("lemma1", "theorem1", "constant"))
        self.needs_gamma = step != "constant" and gamma is None
        self.unit_step = math.nan  # η_p γ
        if step == "constant":
            size = ConstantStep(eta).eta
        else:
            total = arguments.updates_to_come(total_steps, f"step is {step!r}")
            self.unit_step = _SCHEDULES[step](1.0, total, num_domains)
            size = math.nan if gamma is None else _SCHEDULES[step](gamma, total, num_domains)
        self._start_at(self.prior)
        self.register_buffer("eta", torch.tensor(size, dtype=default_dtype()))
        self.register_buffer("log_p", finite_log(self.prior))

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.needs_gamma:
            gamma = torch.linalg.vector_norm(f)
            is_first = self.eta.isnan().logical_and(gamma > _SEEN)
            torch.where(is_first, self.unit_step / gamma, self.eta, out=self.eta)
        payoff = torch.dot(self.p, f)
        step = self.eta.nan_to_num() if self.needs_gamma else self.eta
        # The state is log p, normalised every time: a sum of losses alone would overflow.
        self.log_p.copy_(torch.log_softmax(torch.addcmul(self.log_p, f, step), dim=0))
        return self.log_p.exp(), payoff, f

    def regret_bound(self, mu: float, total_steps: int) -> float | None:
        """log K/η_p + T η_p μ²/8 (proof of Lemma 1) for losses ≥ 0, μ = max_t ‖f̂ᵗ‖₂."""
        smallest, eta = min(self.q), float(self.eta)
        if smallest == 0 or not eta > 0:  # NaN: no loss was seen yet
            return None
        return -math.log(smallest) / eta + total_steps * eta * mu * mu / 8
