"""`method=opt`, and what regularised ascents share."""

from __future__ import annotations

from typing import Any

from robustmd import adversary
from robustmd.config.ranges import CONSTANT_OF_STEP, DISTRIBUTION, POSITIVE, log, one_of
from robustmd.methods.checks import refuse_unread, refuse_unsized
from robustmd.registry import Method, MethodFacts, key, method


@method("opt", look=1, order=3)
class Opt(Method):
    """Mixture-Opt: Alg. 2 with the L2 regularizer."""

    lam: float = key(
        1.0,
        POSITIVE,
        "λ: smaller follows the worst domain, larger stays near the prior",
        tune=log(0.01, 10),
    )
    c: int | float | str = key(
        "auto",
        CONSTANT_OF_STEP,
        "c of step=theory; 0: the plain step; centred: c* without the losses' level",
    )
    mu: float | None = key(None, POSITIVE, "μ of c*, a bound of ‖ĥ‖; null: of the first batch")
    prior: list[float] | None = key(None, DISTRIBUTION, "q; null: uniform", per_domain=True)
    step: str = key("theory", one_of("theory", "constant"), "which step")
    eta: float | None = key(None, POSITIVE, "η of step=constant, which needs it")

    def check(self) -> None:
        refuse_unsized(self)
        if self.step == "constant":
            refuse_unread(self, "method.step=constant has none", "c")
        if self.step == "constant" or not isinstance(self.c, str):
            refuse_unread(self, "only c=auto and c=centred read it", "mu")

    def arguments(self, facts: MethodFacts) -> dict[str, Any]:
        """What the constructors of the regularised ascents have in common."""
        is_by_length = self.step == "theory" and isinstance(self.c, str)
        return {
            "num_domains": facts.num_domains,
            "lam": self.lam,
            "c": self.c,
            "mu": self.mu,
            "total_steps": facts.iterations if is_by_length else None,
            "prior": self.prior,
            "step": self.step,
            "eta": self.eta,
        }

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.ProjectedAscent(regularizer=adversary.L2(), **self.arguments(facts))
