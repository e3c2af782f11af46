"""Rounds of a model oracle against multiplicative weights."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments, schedules
from robustmd.adversary.base import Averaged
from robustmd.adversary.simplex import finite_log


class OracleRounds(Averaged):
    """Mixture-Oracle: Chen et al., *Robust Optimization for Non-Convex Objectives* (NeurIPS 2017).

        p_{r+1} ∝ q exp(η Σ_{s≤r} f_s/m_s)    f_s: the full-data losses after round s, p₁ = q
                                              m_s: the largest loss of the rounds up to s

    In each of R rounds p is fixed and the model, warm-started, takes `every` steps in place of the
    oracle. The theory wants losses in [0, 1], whence m_s; earlier rounds are not rescaled. The
    prior is only where p starts; the paper starts at uniform. q_k = 0 pins p_k = 0.

    | symbol | argument    | range                                           |
    |--------|-------------|-------------------------------------------------|
    | K      | num_domains | ≥ 1                                             |
    | R      | rounds      | ≥ 1; iterations / every                         |
    | η      | eta         | > 0; default sqrt(log K/(2R))                   |
    |        | every       | ≥ 1, the model's steps in a round; default 100  |
    | p₁     | prior       | K weights, ≥ 0, that sum to 1; default: uniform |
    """

    feeds_on: ClassVar[Literal["batch", "dataset"]] = "dataset"

    log_p: Tensor
    largest: Tensor

    def __init__(
        self,
        num_domains: int,
        rounds: int,
        *,
        eta: float | None = None,
        every: int = 100,
        prior: Sequence[float] | None = None,
    ) -> None:
        super().__init__(num_domains, prior)
        self.rounds = arguments.count("rounds", rounds)
        self.every = arguments.count("every", every)
        default = schedules.oracle_step(rounds, num_domains)
        self.eta = default if eta is None else arguments.positive("eta", eta)
        self._start_at(self.prior)
        self.register_buffer("log_p", finite_log(self.prior))
        self.register_buffer("largest", torch.zeros_like(self.p).amax())

    def is_due(self, iteration: int) -> bool:
        """After every round; the first is played at p₁."""
        return iteration > 0 and super().is_due(iteration)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.largest.copy_(torch.maximum(self.largest, f.amax()))
        # Losses that are all 0 move nothing; dividing them by 0 must not either.
        scale = self.largest.clamp(min=torch.finfo(f.dtype).tiny)
        payoff = torch.dot(self.p, f)
        self.log_p.copy_(torch.log_softmax(self.log_p + self.eta * (f / scale), dim=0))
        return self.log_p.exp(), payoff, f
