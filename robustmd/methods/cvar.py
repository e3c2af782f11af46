"""`method=cvar`: the mean loss of the worst share of the domains."""

from __future__ import annotations

from typing import Optional

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION, SHARE_OR_ALL, grid, uniform
from robustmd.registry import MethodFacts, Settings, key, method


@method("cvar", look=12, order=12)
class Cvar(Settings):
    """The share α of the prior's mass; with two domains every α ≤ 1/2 is the maximum."""

    alpha: float = key(0.5, SHARE_OR_ALL, tune=uniform(0.5, 1), grid=grid(0.2, 0.4, 0.6, 0.8))
    prior: Optional[list[float]] = key(None, DISTRIBUTION, per_domain=True)  # noqa: UP045

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.CVaR(facts.num_domains, self.alpha, prior=self.prior)
