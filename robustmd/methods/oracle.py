"""`method=oracle`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import COUNT, DISTRIBUTION, POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("oracle", look=2, order=2)
class Oracle(Method):
    """Mixture-Oracle: Chen et al. (2017) as the paper runs it, in rounds of fixed weights."""

    every: int = key(100, COUNT, "iterations a round")
    eta: float | None = key(None, POSITIVE, "η; null: √(log K/(2R)), R rounds", tune=log(0.02, 2))
    prior: list[float] | None = key(
        None, DISTRIBUTION, "p₁; null: uniform; a zero stays 0", per_domain=True
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        rounds = max(1, facts.iterations // self.every)
        return adversary.OracleRounds(
            facts.num_domains, rounds, eta=self.eta, every=self.every, prior=self.prior
        )
