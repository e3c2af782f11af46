"""`method=dwa`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import COUNT, POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("dwa", look=19, order=19)
class Dwa(Method):
    """Liu, Johns and Davison (2019): more weight where the loss falls slower."""

    temperature: float = key(2.0, POSITIVE, "T; larger is closer to even", tune=log(0.1, 10))
    every: int = key(100, COUNT, "iterations whose mean losses are compared: their epoch")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.DynamicWeightAverage(
            facts.num_domains, temperature=self.temperature, every=self.every
        )
