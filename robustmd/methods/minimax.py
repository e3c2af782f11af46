"""`method=minimax`."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION, POSITIVE, choice, one_of
from robustmd.methods.checks import refuse_unread, refuse_unsized
from robustmd.registry import Method, MethodFacts, key, method


@method("minimax", averages=True, look=5, order=6)
class Minimax(Method):
    """Alg. 1: multiplicative weights without a regularizer; averaged iterates."""

    step: str = key(
        "lemma1",
        one_of("lemma1", "theorem1", "constant"),
        help="which η_p",
        tune=choice("lemma1", "theorem1"),  # a constant one is groupdro in another order
    )
    gamma: float | None = key(None, POSITIVE, "γ, a bound of ‖f̂‖₂; null: ‖f̂¹‖₂")
    eta: float | None = key(None, POSITIVE, "η_p of step=constant, which needs it")
    prior: list[float] | None = key(
        None, DISTRIBUTION, "p₁; null: uniform; a zero stays 0", per_domain=True
    )

    def check(self) -> None:
        refuse_unsized(self)
        if self.step == "constant":
            refuse_unread(self, "method.step=constant has none", "gamma")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.MultiplicativeWeights(
            facts.num_domains,
            step=self.step,  # type: ignore[arg-type]
            total_steps=None if self.step == "constant" else facts.iterations,
            gamma=self.gamma,
            eta=self.eta,
            prior=self.prior,
        )
