"""`method=ot`."""

from __future__ import annotations

from typing import Any

from robustmd import adversary
from robustmd.config.ranges import COST, COUNT, POSITIVE
from robustmd.methods.opt import Opt
from robustmd.registry import MethodFacts, key, method


@method("ot", look=3, order=4)
class Ot(Opt):
    """Mixture-OT: Alg. 2 with the entropic optimal-transport regularizer."""

    nu: float = key(1.0, POSITIVE, "1/ν of the entropy; larger: p follows more slowly")
    cost: Any = key(  # OmegaConf types no nested lists; the range does
        None,
        COST,
        help="M: what moving weight costs; null: 1 − I",
        per_domain=True,
    )
    sweeps: int = key(10, COUNT, "Sinkhorn sweeps an update")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        transport = adversary.EntropicOT(self.cost, self.nu, self.sweeps)
        return adversary.ProjectedAscent(regularizer=transport, **self.arguments(facts))
