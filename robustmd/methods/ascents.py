"""The paper's Algorithm 2 and its relatives: ascent on p with a regularizer."""

from __future__ import annotations

from typing import Any

from robustmd import adversary
from robustmd.config.ranges import (
    CONSTANT_OF_STEP,
    COST,
    COUNT,
    DISTRIBUTION,
    NUMBERS,
    POSITIVE,
    log,
    one_of,
)
from robustmd.methods.checks import refuse_unread, refuse_unsized
from robustmd.registry import FinishedRuns, Method, MethodFacts, key, method


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


@method("kl", look=4, order=5)
class Kl(Opt):
    """Mirror ascent with the KL regularizer."""

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.MirrorAscent(**self.arguments(facts))


@method("optimistic", look=15, order=15)
class Optimistic(Opt):
    """opt on extrapolated losses."""

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.OptimisticAscent(regularizer=adversary.L2(), **self.arguments(facts))


@method("regret", look=14, order=14)
class Regret(Opt):
    """opt on the excess over the best loss that each domain can have."""

    reference: list[float] | None = key(
        None, NUMBERS, "f*, nats; null: of individual runs", per_domain=True
    )

    def filled(self, runs: FinishedRuns) -> tuple[Regret, str]:
        if self.reference is not None:
            return self, ""
        reference, note = runs.best_losses()
        return self.model_copy(update={"reference": reference}), note

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        if self.reference is None:
            raise ValueError("method.reference=null: must be given, or come from individual runs")
        return adversary.ExcessAscent(
            regularizer=adversary.L2(), reference=self.reference, **self.arguments(facts)
        )
