"""What multi-task learning balances losses by; none is after the worst case."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import COUNT, NOT_NEGATIVE, POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("uncertainty", look=18, order=18)
class Uncertainty(Method):
    """Kendall et al. (2018): learned uncertainties weigh the losses; not after the worst case."""

    eta: float = key(0.01, POSITIVE, "η, the step of the log-variances s", tune=log(0.001, 1))

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.UncertaintyWeights(facts.num_domains, eta=self.eta)


@method("dwa", look=19, order=19)
class Dwa(Method):
    """Liu, Johns and Davison (2019): more weight where the loss falls slower."""

    temperature: float = key(2.0, POSITIVE, "T; larger is closer to even", tune=log(0.1, 10))
    every: int = key(100, COUNT, "iterations whose mean losses are compared: their epoch")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.DynamicWeightAverage(
            facts.num_domains, temperature=self.temperature, every=self.every
        )


@method("famo", look=20, order=20)
class Famo(Method):
    """Liu et al. (2023): all losses fall at one rate."""

    eta: float = key(0.025, POSITIVE, "Adam's step of the logits ξ", tune=log(0.0025, 0.25))
    gamma: float = key(0.001, NOT_NEGATIVE, "γ, the decay of ξ towards even")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.FAMO(facts.num_domains, eta=self.eta, gamma=self.gamma)
