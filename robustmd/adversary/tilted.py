"""Tilted losses: weights that follow the batch exponentially, without memory."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary
from robustmd.adversary.simplex import finite_log


class Tilted(Adversary):
    """TERM over domains: Li, Beirami, Sanjabi and Smith, *Tilted Empirical Risk Minimization*
    (ICLR 2021).

        min_W (1/t) log Σ_k q_k exp(t f_k(W)),    whose gradient is Σ_k p_k ∇f_k with
        p_k ∝ q_k exp(t f̂_k)                      of the same batch: `weighs` is "current"

    t → 0 is the mean Σ q_k f_k (and t = 0 is it), t → ∞ the largest loss, t → −∞ the smallest. For
    t > 0 this is the best response of the KL-regularised adversary at λ = 2/t. q_k = 0 pins p_k
    at 0.

    | symbol | argument    | range                                                              |
    |--------|-------------|--------------------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                                |
    | t      | tilt        | any number; > 0 leans to the worst domain, < 0 turns away from it  |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default: uniform                    |

    A value out of range raises a ValueError.
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    log_prior: Tensor

    def __init__(
        self, num_domains: int, tilt: float, *, prior: Sequence[float] | None = None
    ) -> None:
        super().__init__(num_domains, prior)
        self.tilt = arguments.number("tilt", tilt)
        self.register_buffer("log_prior", finite_log(self.prior), persistent=False)
        self._start_at(self.prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        p = torch.softmax(torch.add(self.log_prior, f, alpha=self.tilt), dim=0)
        return p, torch.dot(p, f), None
