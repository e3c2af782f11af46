"""`method=regret`: opt on the excess over the best loss that each domain can have."""

from __future__ import annotations

import dataclasses
from typing import Optional

from robustmd import adversary
from robustmd.config.ranges import NUMBERS
from robustmd.methods.opt import Opt
from robustmd.registry import FinishedRuns, MethodFacts, key, method


@method("regret", look=14, order=14)
class Regret(Opt):
    """The keys of opt, and f* [K] in nats."""

    reference: Optional[list[float]] = key(None, NUMBERS, per_domain=True)  # noqa: UP045

    def filled(self, runs: FinishedRuns) -> tuple[Regret, str]:
        if self.reference is not None:
            return self, ""
        reference, note = runs.best_losses()
        return dataclasses.replace(self, reference=reference), note

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        if self.reference is None:
            raise ValueError("method.reference=null: must be given, or come from individual runs")
        return adversary.ExcessAscent(
            regularizer=adversary.L2(), reference=self.reference, **self.arguments(facts)
        )
