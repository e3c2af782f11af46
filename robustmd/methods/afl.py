"""`method=afl`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("afl", averages=True, look=10, order=10)
class Afl(Method):
    """Mohri et al. (2019): projected ascent without a regularizer, averaged iterates."""

    eta: float = key(
        0.01,
        POSITIVE,
        "γ_λ, the constant step of the weights",
        tune=log(0.001, 1),
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.AgnosticAscent(facts.num_domains, eta=self.eta)
