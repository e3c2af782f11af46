"""Ascent without a regularizer: the paper's Algorithm 1, Mixture-Oracle, group DRO, agnostic FL."""

from __future__ import annotations

from robustmd import adversary
from robustmd.config.ranges import COUNT, DISTRIBUTION, NOT_NEGATIVE, POSITIVE, choice, log, one_of
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


@method("oracle", look=2, order=2)
class Oracle(Method):
    """Mixture-Oracle: Chen et al. (2017) as the paper runs it, in rounds of fixed weights."""

    every: int = key(100, COUNT, "iterations a round")
    eta: float | None = key(None, POSITIVE, "η; null: √(log K/(2R)), R rounds", tune=log(0.02, 2))
    prior: list[float] | None = key(
        None, DISTRIBUTION, "p₁; null: uniform; a zero stays 0", per_domain=True
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        rounds = max(1, facts.iterations // self.every)
        return adversary.OracleRounds(
            facts.num_domains, rounds, eta=self.eta, every=self.every, prior=self.prior
        )


@method("groupdro", look=9, order=9)
class GroupDro(Method):
    """Sagawa et al. (2020): exponentiated gradient with size adjustment."""

    eta: float = key(0.01, POSITIVE, "η_q, the step of the weights", tune=log(0.001, 1))
    adjustment: float = key(0.0, NOT_NEGATIVE, "C of the allowance C/√n_k; 0: none")

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.GroupDRO(
            facts.num_domains, eta=self.eta, adjustment=self.adjustment, sizes=facts.sizes
        )


@method("afl", averages=True, look=10, order=10)
class Afl(Method):
    """Mohri et al. (2019): projected ascent without a regularizer, averaged iterates."""

    eta: float = key(
        0.01,
        POSITIVE,
        "γ_λ, the constant step of the weights",
        tune=log(0.001, 1),
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.AgnosticAscent(facts.num_domains, eta=self.eta)
