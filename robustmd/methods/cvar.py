"""`method=cvar`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION, SHARE_OR_ALL, uniform
from robustmd.registry import Method, MethodFacts, key, method


@method("cvar", look=12, order=12)
class Cvar(Method):
    """The mean loss of the worst share of the domains."""

    alpha: float = key(
        0.5,
        SHARE_OR_ALL,
        "α: 1 is even; up to the smallest q_k it is the worst domain alone",
        tune=uniform(0.5, 1),
    )
    prior: list[float] | None = key(None, DISTRIBUTION, "q; null: uniform", per_domain=True)

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.CVaR(facts.num_domains, self.alpha, prior=self.prior)
