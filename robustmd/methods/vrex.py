"""`method=vrex`: Krueger et al. (2021), mean and variance of the losses."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import NOT_NEGATIVE, grid, log
from robustmd.registry import MethodFacts, Settings, key, method


@method("vrex", look=16, order=16)
class Vrex(Settings):
    """The weight β of the variance."""

    beta: float = key(1.0, NOT_NEGATIVE, tune=log(0.1, 10), grid=grid(1.0, 3.0, 10.0, 30.0))

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.VarianceRisk(facts.num_domains, self.beta)
