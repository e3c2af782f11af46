"""`method=best_response`."""

from __future__ import annotations

from typing import Any

from robustmd import adversary
from robustmd.config.ranges import COST, COUNT, DISTRIBUTION, POSITIVE, log, one_of
from robustmd.methods.checks import refuse_unread
from robustmd.registry import Method, MethodFacts, key, method


@method("best_response", look=6, order=7)
class BestResponse(Method):
    """Theorem 4: the exact best response to the full-data losses."""

    regularizer: str = key("l2", one_of("none", "l2", "kl", "ot"), "D")
    lam: float = key(1.0, POSITIVE, "λ; without effect for none", tune=log(0.01, 10))
    nu: float = key(1.0, POSITIVE, "ν, for ot alone")
    cost: Any = key(None, COST, "M, for ot alone; null: 1 − I", per_domain=True)
    every: int = key(100, COUNT, "iterations between updates; the theorem's is 1")
    prior: list[float] | None = key(
        None, DISTRIBUTION, per_domain=True, help="q; null: uniform; none refuses one"
    )

    def check(self) -> None:
        if self.regularizer != "ot":
            refuse_unread(self, "only method.regularizer=ot has it", "nu", "cost")
        if self.regularizer == "none":
            refuse_unread(self, "method.regularizer=none has none", "prior")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        regularizer: adversary.Regularizer | None = None
        if self.regularizer == "ot":
            regularizer = adversary.EntropicOT(self.cost, self.nu)
        elif self.regularizer != "none":
            regularizer = {"l2": adversary.L2, "kl": adversary.KL}[self.regularizer]()
        return adversary.BestResponse(
            facts.num_domains, regularizer, self.lam, every=self.every, prior=self.prior
        )
