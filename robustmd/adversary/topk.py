"""The mean of the k largest losses."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary
from robustmd.adversary.cvar import spend_on_worst


class TopK(Adversary):
    """The average top-k loss of Fan, Lyu, Ying and Hu (NeurIPS 2017), over domains.

        p = 1/k on the k domains with the largest f̂, 0 on the others

    The same as `CVaR` at α = k/K and a uniform prior, but exact. k = 1 is the plain maximum, k = K
    is p uniform. Where domains of equal loss compete for the last places, they share them. No
    memory: p answers the same batch (`weighs` is "current").

    | symbol | argument    | range    |
    |--------|-------------|----------|
    | K      | num_domains | ≥ 1      |
    | k      | k           | 1 … K    |

    A value out of range raises a ValueError.
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    def __init__(self, num_domains: int, k: int) -> None:
        super().__init__(num_domains)
        if arguments.count("k", k) > num_domains:
            raise ValueError(f"k is {k}; there are only {num_domains} domains.")
        self.k = k

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        p = spend_on_worst(f, torch.ones_like(f), self.k) / self.k
        return p, torch.dot(p, f), None
