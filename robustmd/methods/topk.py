"""`method=topk`."""

from __future__ import annotations

from collections.abc import Sequence

from robustmd import adversary
from robustmd.config.ranges import COUNT, choice
from robustmd.errors import UserError, listed
from robustmd.registry import Method, MethodFacts, key, method


@method("topk", look=13, order=13)
class Topk(Method):
    """The mean of the k largest losses."""

    k: int = key(
        1,
        COUNT,
        "k; 1: the worst alone; at most the number of domains, which is even",
        tune=choice(1),
    )

    def settled(self, trained: Sequence[str]) -> Topk:
        if self.k > len(trained):
            raise UserError(
                f"method.k={self.k}: must be at most the number of domains, {len(trained)} "
                f"({listed(trained)})"
            )
        return self

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.TopK(facts.num_domains, self.k)
