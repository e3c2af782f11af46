"""`method=term`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION, NUMBER, log
from robustmd.registry import Method, MethodFacts, key, method


@method("term", look=11, order=11)
class Term(Method):
    """Li et al. (2021): tilted losses."""

    t: float = key(
        1.0,
        NUMBER,
        "the tilt: larger leans to the worst domain, 0 is even, below 0 turns away from it",
        tune=log(0.1, 100),
    )
    prior: list[float] | None = key(
        None, DISTRIBUTION, per_domain=True, help="q; null: uniform; a zero stays 0"
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Tilted(facts.num_domains, self.t, prior=self.prior)
