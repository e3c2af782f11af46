"""The mean loss and a penalty on how much the domains' losses differ."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary


class VarianceRisk(Adversary):
    """V-REx of Krueger et al., *Out-of-Distribution Generalization via Risk Extrapolation* (ICML
    2021).

        min_W f̄(W) + β Var_k f_k(W),    f̄ = (1/K) Σ_k f_k,  Var_k f_k = (1/K) Σ_k (f_k − f̄)²

    There is no adversary in it, but its gradient is a weighted sum of the domains' gradients:

        ∇(f̄ + β Var) = Σ_k p_k ∇f_k,    p_k = 1/K + (2β/K)(f̂_k − f̄),    Σ_k p_k = 1

    of the same batch (`weighs` is "current"). A domain whose loss is more than 1/(2β) below the
    mean has a *negative* weight (`signed`): the model's step makes it worse, to make them equal.

    | symbol | argument    | range |
    |--------|-------------|-------|
    | m      | num_domains | ≥ 1   |
    | β      | beta        | ≥ 0   |

    A value out of range raises a ValueError.
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"
    signed: ClassVar[bool] = True

    def __init__(self, num_domains: int, beta: float) -> None:
        super().__init__(num_domains)
        self.beta = arguments.nonnegative("beta", beta)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        above_mean = f - f.mean()
        p = (1 + 2 * self.beta * above_mean) / self.num_domains
        return p, torch.dot(p, f), None
