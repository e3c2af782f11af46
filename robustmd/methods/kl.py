"""`method=kl`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.methods.opt import Opt
from robustmd.registry import MethodFacts, method


@method("kl", look=4, order=5)
class Kl(Opt):
    """Mirror ascent with the KL regularizer."""

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.MirrorAscent(**self.arguments(facts))
