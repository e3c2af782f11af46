"""Conditional value at risk: the mean loss of the worst share of the domains."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary


def spend_on_worst(losses: Tensor, mass: Tensor, budget: float) -> Tensor:
    """Spend a budget on the domains with the largest losses: each gets at most its mass.

        argmax_s s·f   subject to   0 ≤ s ≤ m,  Σ s_k = min(b, Σ m_k)

    Domains of equal loss share what is left for them in proportion to their mass.

    Args:
        losses: f [K].
        mass: m [K], ≥ 0.
        budget: b > 0.

    Returns:
        s [K].
    """
    ascending, order = losses.neg().sort()
    total = torch.nn.functional.pad(mass[order].cumsum(dim=0), (1, 0))  # of the j worst, j = 0 … K
    above = total[torch.searchsorted(ascending, -losses)]  # mass with a larger loss
    level = total[torch.searchsorted(ascending, -losses, right=True)] - above  # with the same
    spent = (budget - above).clamp(min=0).minimum(level)
    return mass * (spent / level.clamp(min=torch.finfo(mass.dtype).tiny))


class CVaR(Adversary):
    """Conditional value at risk over domains: Rockafellar and Uryasev (Journal of Risk, 2000).

        max_p p·f̂   subject to   0 ≤ p_k ≤ q_k/α,  Σ p_k = 1

    The worst domains up to a share α of the prior's mass get all the weight, in proportion to q;
    the last of them only what is left, and domains of equal loss share alike. α = 1 is p = q, and
    α ≤ min_k q_k the plain maximum. No memory: p answers the same batch (`weighs` is "current").

    | symbol | argument    | range                                           |
    |--------|-------------|-------------------------------------------------|
    | K      | num_domains | ≥ 1                                             |
    | α      | alpha       | > 0, ≤ 1                                        |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default: uniform |

    A value out of range raises a ValueError.
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    def __init__(
        self, num_domains: int, alpha: float, *, prior: Sequence[float] | None = None
    ) -> None:
        super().__init__(num_domains, prior)
        self.alpha = arguments.share("alpha", alpha)
        self._start_at(self.prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        spent = spend_on_worst(f, self.prior, self.alpha)
        p = spent / spent.sum()
        return p, torch.dot(p, f), None
