"""`method=regret`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import NUMBERS
from robustmd.methods.opt import Opt
from robustmd.registry import FinishedRuns, MethodFacts, key, method


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
