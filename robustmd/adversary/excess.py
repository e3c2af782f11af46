"""Projected ascent on what each domain still has to gain."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.ascent import ProjectedAscent
from robustmd.adversary.regularizers import Regularizer


class ExcessAscent(ProjectedAscent):
    """`ProjectedAscent` on the excess f_k − f*_k over the best loss that domain k can have.

        min_W max_{p∈Δ} p·(f(W) − f*) − (λ/2) D(p‖q)

    Minimax regret, as Agarwal and Zhang, *Minimax Regret Optimization* (COLT 2022) have it for
    distributions: a domain whose labels are noise has a large f_k, but nothing that could be gained
    on it, and no longer rules. With f* = 0 this is `ProjectedAscent`.

    | symbol | argument  | range                                                          |
    |--------|-----------|----------------------------------------------------------------|
    | f*     | reference | K numbers: the losses of models that each saw one domain alone |

    The other arguments are those of `ProjectedAscent`, whose μ is here a bound for the excess.
    """

    reference: Tensor

    def __init__(
        self,
        num_domains: int,
        regularizer: Regularizer,
        lam: float,
        *,
        reference: Sequence[float],
        **ascent: Any,
    ) -> None:
        super().__init__(num_domains, regularizer, lam, **ascent)
        best = arguments.one_per_domain("reference", reference, num_domains)
        self.register_buffer("reference", self.p.new_tensor(best), persistent=False)

    def _observe(self, losses: Tensor, present: Tensor | None) -> Tensor:
        return super()._observe(losses, present) - self.reference
