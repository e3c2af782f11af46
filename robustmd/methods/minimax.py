"""`method=minimax`: Alg. 1, multiplicative weights without a regularizer; averaged iterates."""

from __future__ import annotations

from typing import Optional

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION, POSITIVE, choice, grid, one_of
from robustmd.methods.checks import refuse_unread, refuse_unsized
from robustmd.registry import MethodFacts, Settings, key, method


@method("minimax", averages=True, look=5, order=6)
class Minimax(Settings):
    """The step sizes of Lemma 1 and Theorem 1, or a constant one, which would be groupdro in
    another order and is not tuned."""

    step: str = key(
        "lemma1",
        one_of("lemma1", "theorem1", "constant"),
        tune=choice("lemma1", "theorem1"),
        grid=grid("constant"),
    )
    gamma: Optional[float] = key(None, POSITIVE)  # noqa: UP045
    eta: Optional[float] = key(None, POSITIVE, grid=grid(0.01, 0.03, 0.1, 0.3))  # noqa: UP045
    prior: Optional[list[float]] = key(None, DISTRIBUTION, per_domain=True)  # noqa: UP045

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
