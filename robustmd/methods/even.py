"""`method=even`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION
from robustmd.registry import Method, MethodFacts, key, method


@method("even", learns=False, baseline=1, look=0, order=1)
class Even(Method):
    """Mixture-Even: fixed weights, uniform or given."""

    prior: list[float] | None = key(None, DISTRIBUTION, "q; null: uniform", per_domain=True)

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Fixed(facts.num_domains, prior=self.prior)
