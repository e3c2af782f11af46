"""`method=famo`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import NOT_NEGATIVE, POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("famo", look=20, order=20)
class Famo(Method):
    """Liu et al. (2023): all losses fall at one rate."""

    eta: float = key(0.025, POSITIVE, "Adam's step of the logits ξ", tune=log(0.0025, 0.25))
    gamma: float = key(0.001, NOT_NEGATIVE, "γ, the decay of ξ towards even")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.FAMO(facts.num_domains, eta=self.eta, gamma=self.gamma)
