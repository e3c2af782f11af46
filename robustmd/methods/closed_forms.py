"""Weights that are a function of the current losses alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robustmd import adversary
from robustmd.config.ranges import (
    COST,
    COUNT,
    DISTRIBUTION,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SHARE_OR_ALL,
    choice,
    log,
    one_of,
    uniform,
)
from robustmd.errors import UserError, listed
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


@method("term", look=11, order=11)
class Term(Method):
    """Li et al. (2021): tilted losses."""

    t: float = key(
        1.0,
        NUMBER,
        "the tilt: larger leans to the worst domain, 0 is even, below 0 turns away from it",
        tune=log(0.1, 100),
    )
    prior: list[float] | None = key(
        None, DISTRIBUTION, per_domain=True, help="q; null: uniform; a zero stays 0"
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Tilted(facts.num_domains, self.t, prior=self.prior)


@method("cvar", look=12, order=12)
class Cvar(Method):
    """The mean loss of the worst share of the domains."""

    alpha: float = key(
        0.5,
        SHARE_OR_ALL,
        "α: 1 is even; up to the smallest q_k it is the worst domain alone",
        tune=uniform(0.5, 1),
    )
    prior: list[float] | None = key(None, DISTRIBUTION, "q; null: uniform", per_domain=True)

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.CVaR(facts.num_domains, self.alpha, prior=self.prior)


@method("topk", look=13, order=13)
class Topk(Method):
    """The mean of the k largest losses."""

    k: int = key(
        1,
        COUNT,
        "k; 1: the worst alone; at most the number of domains, which is even",
        tune=choice(1),
    )

    def settled(self, trained: Sequence[str]) -> Topk:
        if self.k > len(trained):
            raise UserError(
                f"method.k={self.k}: must be at most the number of domains, {len(trained)} "
                f"({listed(trained)})"
            )
        return self

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.TopK(facts.num_domains, self.k)


@method("vrex", look=16, order=16)
class Vrex(Method):
    """Krueger et al. (2021): the mean and the variance of the losses."""

    beta: float = key(
        1.0,
        NOT_NEGATIVE,
        "β, of the variance; 0 is even",
        tune=log(0.1, 10),
    )

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.VarianceRisk(facts.num_domains, self.beta)
