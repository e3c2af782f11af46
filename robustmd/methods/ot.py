"""`method=ot`: Mixture-OT, Alg. 2 with the entropic optimal-transport regularizer."""

from __future__ import annotations

from typing import Any

from robustmd import adversary
from robustmd.config.ranges import COST, COUNT, POSITIVE
from robustmd.methods.opt import Opt
from robustmd.registry import MethodFacts, key, method


@method("ot", look=3, order=4)
class Ot(Opt):
    """The keys of opt, and those of the transport: ν, the cost M [K, K], Sinkhorn's sweeps."""

    nu: float = key(1.0, POSITIVE)
    cost: Any = key(None, COST, per_domain=True)  # OmegaConf types no nested lists; the range does
    sweeps: int = key(10, COUNT)

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        transport = adversary.EntropicOT(self.cost, self.nu, self.sweeps)
        return adversary.ProjectedAscent(regularizer=transport, **self.arguments(facts))
