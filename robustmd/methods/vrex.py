"""`method=vrex`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import NOT_NEGATIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("vrex", look=16, order=16)
class Vrex(Method):
    """Krueger et al. (2021): the mean and the variance of the losses."""

    beta: float = key(
        1.0,
        NOT_NEGATIVE,
        "β, of the variance; 0 is even",
        tune=log(0.1, 10),
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.VarianceRisk(facts.num_domains, self.beta)
