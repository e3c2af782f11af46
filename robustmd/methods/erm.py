"""`method=erm`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.registry import Method, MethodFacts, method


@method("erm", learns=False, baseline=2, look=8, order=8)
class Erm(Method):
    """Fixed weights: the domains' shares of the training examples."""

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        if facts.sizes is None:
            raise ValueError("the weights are the domains' sizes, which are not known here")
        return adversary.Fixed(facts.num_domains, prior=[n / sum(facts.sizes) for n in facts.sizes])
