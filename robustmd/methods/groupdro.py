"""`method=groupdro`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import NOT_NEGATIVE, POSITIVE, log
from robustmd.registry import Method, MethodFacts, key, method


@method("groupdro", look=9, order=9)
class GroupDro(Method):
    """Sagawa et al. (2020): exponentiated gradient with size adjustment."""

    eta: float = key(0.01, POSITIVE, "η_q, the step of the weights", tune=log(0.001, 1))
    adjustment: float = key(0.0, NOT_NEGATIVE, "C of the allowance C/√n_k; 0: none")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.GroupDRO(
            facts.num_domains, eta=self.eta, adjustment=self.adjustment, sizes=facts.sizes
        )
