"""The adversary's regret, measured while it plays."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary, Play
from robustmd.adversary.precision import PreciseModule, default_dtype
from robustmd.adversary.regularizers import NoRegularizer, Regularizer
from robustmd.adversary.steps import spread


class RegretMeter(PreciseModule):
    """How much better the best fixed distribution would have done, per update.

        (1/T) { max_{p∈Δ} Σ_t [p·f̂ᵗ − (λ/2) D(p‖q)] − Σ_t [p_t·f̂ᵗ − (λ/2) D(p_t‖q)] }

    The maximum is the best value against the mean loss. Beside it stands μ_obs = max_t ‖ĥᵗ‖ (in
    ‖·‖₂; for KL in ‖·‖_∞), at which the proved bound holds for every realisation; with
    c = "centred" of ĥᵗ without its level. The sums stay on the device; `update` makes no sync.

    Args:
        num_domains: K ≥ 1.
        regularizer: D, the adversary's.
        lam: λ > 0, the adversary's.
        prior: q, K weights that are not negative and sum to 1; None: uniform.
        is_centred: whether μ_obs is of ĥᵗ without its level.

    Attributes:
        mu: μ_obs so far, a scalar; 0 for a rule that has no direction.
        steps: T so far, a scalar.
    """

    prior: Tensor
    loss_sum: Tensor
    payoff_sum: Tensor
    mu: Tensor
    steps: Tensor

    def __init__(
        self,
        num_domains: int,
        regularizer: Regularizer,
        lam: float,
        prior: Sequence[float] | None = None,
        *,
        is_centred: bool = False,
    ) -> None:
        super().__init__()
        self.is_centred = is_centred
        regularizer.prepare(arguments.count("num_domains", num_domains))
        self.regularizer = regularizer
        self.lam = arguments.positive("lam", lam)
        q = arguments.distribution("prior", prior, num_domains)
        self.register_buffer("prior", torch.tensor(q, dtype=default_dtype()), persistent=False)
        self.register_buffer("loss_sum", torch.zeros_like(self.prior))
        self.register_buffer("payoff_sum", torch.zeros_like(self.prior).sum())
        self.register_buffer("mu", torch.zeros_like(self.payoff_sum))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    @classmethod
    def of(cls, adversary: Adversary) -> "RegretMeter":
        """A meter for that adversary, on its device, with its regularizer, λ and prior."""
        regularizer = getattr(adversary, "regularizer", None) or NoRegularizer()
        lam = getattr(adversary, "lam", 1.0)
        is_centred = getattr(getattr(adversary, "step", None), "is_centred", False)
        meter = cls(adversary.num_domains, regularizer, lam, adversary.q, is_centred=is_centred)
        return meter.to(adversary.p.device)

    def update(self, play: Play) -> None:
        """Count one update of the adversary; `play` is what `Adversary.update` returned.

        One that was skipped is not counted.
        """
        self.steps.add_(play.counts)
        self.loss_sum.addcmul_(play.losses, play.counts)
        self.payoff_sum.addcmul_(play.payoff, play.counts)
        if play.direction is not None:
            ord = self.regularizer.dual_norm
            length = spread if self.is_centred else torch.linalg.vector_norm
            norm = length(play.direction, ord)
            torch.maximum(self.mu, norm * play.counts, out=self.mu)

    def measured(self) -> Tensor:
        """The regret per update so far, a scalar on the device; NaN before the first update."""
        mean_loss = self.loss_sum / self.steps
        best = self.regularizer.best_value(mean_loss, self.prior, self.lam)
        return best - self.payoff_sum / self.steps

    def summary(self, adversary: Adversary) -> dict[str, Any]:
        """Numbers for a person (the host waits for the device): both regrets are per update.

        Returns:
            {"measured": float, "bound": float or None, "mu": float, "updates": int}; no bound
            where none is proved or a loss was not finite.
        """
        updates, mu = int(self.steps), float(self.mu)
        known = updates > 0 and math.isfinite(mu)  # a diverged run has no μ
        bound = adversary.regret_bound(mu, updates) if known else None
        return {
            "measured": float(self.measured()),
            "bound": None if bound is None else bound / updates,
            "mu": mu,
            "updates": updates,
        }
