"""The exact best response to the losses on the whole training set."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary
from robustmd.adversary.regularizers import NoRegularizer, Regularizer


class BestResponse(Adversary):
    """Theorem 4 of Qian et al. (AAAI-19): the adversary that is always right, at a price.

        p ← argmax_{p∈Δ} p·f(W_t) − (λ/2) D(p‖q)    f: the full-data losses, before the model's step

    The theorem updates at every iteration. As printed it leaves out the regularizer, and is not
    true: F(W) = max_p p·f(W) is not smooth. With L2 it holds (`schedules.theorem4_smoothness`).
    p₁ is uniform (with KL on the prior's support, for q_k = 0 pins p_k = 0).

    | symbol | argument    | range                                                              |
    |--------|-------------|--------------------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                                |
    | D      | regularizer | `L2()`, `KL()`, `EntropicOT()`; None: all mass on the worst domain |
    | λ      | lam         | > 0; None only without a regularizer                               |
    |        | every       | ≥ 1 iterations between updates; the theorem's is 1                 |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default uniform                     |
    """

    feeds_on: ClassVar[Literal["batch", "dataset"]] = "dataset"

    def __init__(
        self,
        num_domains: int,
        regularizer: Regularizer | None,
        lam: float | None = None,
        *,
        every: int = 100,
        prior: Sequence[float] | None = None,
    ) -> None:
        super().__init__(num_domains, prior)
        self.every = arguments.count("every", every)
        self.regularizer = NoRegularizer() if regularizer is None else regularizer
        if isinstance(self.regularizer, NoRegularizer):
            if prior is not None:
                raise ValueError(
                    "a prior has no effect without a regularizer: give one, or neither."
                )
            self.lam = 1.0  # multiplies nothing
        elif lam is None:
            raise ValueError("lam is None; it must be above 0 with a regularizer.")
        else:
            self.lam = arguments.positive("lam", lam)
        self.regularizer.prepare(num_domains)
        if self.regularizer.pins_zero_prior:
            self._start_on_support()

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        drift = self.regularizer.value(self.p, self.prior)
        payoff = torch.dot(self.p, f).sub_(drift, alpha=self.lam / 2)
        return self.regularizer.best_response(f, self.prior, self.lam), payoff, None
