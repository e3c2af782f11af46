"""`method=uncertainty`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("uncertainty", look=18, order=18)
class Uncertainty(Method):
    """Kendall et al. (2018): learned uncertainties weigh the losses; not after the worst case."""

    eta: float = key(0.01, POSITIVE, "η, the step of the log-variances s", tune=log(0.001, 1))

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.UncertaintyWeights(facts.num_domains, eta=self.eta)
