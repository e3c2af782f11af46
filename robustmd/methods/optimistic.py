"""`method=optimistic`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.methods.opt import Opt
from robustmd.registry import MethodFacts, method


@method("optimistic", look=15, order=15)
class Optimistic(Opt):
    """opt on extrapolated losses."""

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.OptimisticAscent(regularizer=adversary.L2(), **self.arguments(facts))
