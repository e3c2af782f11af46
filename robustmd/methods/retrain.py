"""`method=retrain`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION
from robustmd.errors import UserError
from robustmd.registry import FinishedRuns, Method, MethodFacts, key, method


@method("retrain", learns=False, fair=False, look=17, order=17)
class Retrain(Method):
    """Fixed weights: those that another run had on average."""

    run: str | None = key(None, help="a folder of finished runs of one configuration: their p̄")
    weights: list[float] | None = key(
        None, DISTRIBUTION, "p itself, in place of a run", per_domain=True
    )

    def check(self) -> None:
        if None not in (self.run, self.weights):
            raise UserError(
                f"method.run={self.run}: method.weights is given as well; leave one out"
            )

    def filled(self, runs: FinishedRuns) -> tuple[Retrain, str]:
        if self.weights is not None:
            return self, ""
        weights, note = runs.mean_weights(self.run)
        return self.model_copy(update={"run": None, "weights": weights}), note

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        if self.weights is None:
            raise ValueError("method.weights=null: must be given, or come from method.run")
        return adversary.Fixed(facts.num_domains, prior=self.weights)
