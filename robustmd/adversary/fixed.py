"""Fixed weights: no adversary at all."""

from collections.abc import Sequence

import torch
from torch import Tensor

from robustmd.adversary.base import Adversary


class Fixed(Adversary):
    """Mixture-Even of Qian et al. (AAAI-19), and the controls with any other fixed weights.

        p_t = q

    | symbol | argument    | range                                           |
    |--------|-------------|-------------------------------------------------|
    | K      | num_domains | ≥ 1                                             |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default: uniform |
    """

    learns = False

    def __init__(self, num_domains: int, *, prior: Sequence[float] | None = None) -> None:
        super().__init__(num_domains, prior)
        self._start_at(self.prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        return self.p, torch.dot(self.p, f), None
