"""From the `method` group to an adversary: the one place that knows both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from robustmd import method_settings as methods
from robustmd.adversary import (
    KL,
    L2,
    AgnosticAscent,
    BestResponse,
    CVaR,
    EntropicOT,
    ExcessAscent,
    Fixed,
    GroupDRO,
    MirrorAscent,
    MultiplicativeWeights,
    OptimisticAscent,
    OracleRounds,
    ProjectedAscent,
    Regularizer,
    Tilted,
    TopK,
    VarianceRisk,
)
from robustmd.adversary.base import Adversary
from robustmd.errors import UserError

# They play against every batch, with weights from before it.
RULES_WITH_REGRET = frozenset({"opt", "ot", "kl", "minimax", "afl", "regret", "optimistic"})
RETURNS_AVERAGE = frozenset({"minimax", "afl"})  # published so: they return W̄ and p̄
FIXED_BY_THE_USER = frozenset({"individual", "even", "erm", "retrain"})  # no weights are learned


@dataclass(frozen=True)
class Facts:
    """What a rule may know beside its settings: K domains, T iterations, the training sizes n_k."""

    num_domains: int
    iterations: int
    sizes: Sequence[int] | None


def build_adversary(
    method: Any, num_domains: int, iterations: int, *, sizes: Sequence[int] | None = None
) -> Adversary:
    """The rule that `method` names.

    Args:
        method: one of `method_settings.METHODS`, checked.
        num_domains: K, the domains that train.
        iterations: T.
        sizes: n_k, how many examples each of them trains on; erm and groupdro ask for them.

    Raises:
        UserError: the rule refuses a combination of its settings.
    """
    try:
        return BUILDERS[method.name](method, Facts(num_domains, iterations, sizes))
    except ValueError as error:
        raise UserError(f"method={method.name}: {error}") from None


def _individual(_: methods.Individual, facts: Facts) -> Adversary:
    return Fixed(facts.num_domains)


def _even(method: methods.Even, facts: Facts) -> Adversary:
    return Fixed(facts.num_domains, prior=method.prior)


def _erm(_: methods.Erm, facts: Facts) -> Adversary:
    if facts.sizes is None:
        raise ValueError("the weights are the domains' sizes, which are not known here")
    return Fixed(facts.num_domains, prior=[n / sum(facts.sizes) for n in facts.sizes])


def _retrain(method: methods.Retrain, facts: Facts) -> Adversary:
    if method.weights is None:
        raise ValueError("method.weights=null: must be given, or come from method.run")
    return Fixed(facts.num_domains, prior=method.weights)


def _ascent(method: methods.Opt, facts: Facts) -> dict[str, Any]:
    """What the regularised ascents share."""
    return {
        "num_domains": facts.num_domains,
        "lam": method.lam,
        "c": method.c,
        "mu": method.mu,
        "total_steps": facts.iterations,
        "prior": method.prior,
        "step": method.step,
        "eta": method.eta,
    }


def _opt(method: methods.Opt, facts: Facts) -> Adversary:
    return ProjectedAscent(regularizer=L2(), **_ascent(method, facts))


def _optimistic(method: methods.Optimistic, facts: Facts) -> Adversary:
    return OptimisticAscent(regularizer=L2(), **_ascent(method, facts))


def _regret(method: methods.Regret, facts: Facts) -> Adversary:
    if method.reference is None:
        raise ValueError("method.reference=null: must be given, or come from individual runs")
    return ExcessAscent(regularizer=L2(), reference=method.reference, **_ascent(method, facts))


def _ot(method: methods.Ot, facts: Facts) -> Adversary:
    transport = EntropicOT(method.cost, method.nu, method.sweeps)
    return ProjectedAscent(regularizer=transport, **_ascent(method, facts))


def _kl(method: methods.Kl, facts: Facts) -> Adversary:
    return MirrorAscent(**_ascent(method, facts))


def _minimax(method: methods.Minimax, facts: Facts) -> Adversary:
    return MultiplicativeWeights(
        facts.num_domains,
        step=method.step,  # type: ignore[arg-type]
        total_steps=facts.iterations,
        gamma=method.gamma,
        eta=method.eta,
        prior=method.prior,
    )


def _best_response(method: methods.BestResponse, facts: Facts) -> Adversary:
    regularizers: dict[str, Callable[[], Regularizer | None]] = {
        "none": lambda: None,
        "l2": L2,
        "kl": KL,
        "ot": lambda: EntropicOT(method.cost, method.nu),
    }
    regularizer = regularizers[method.regularizer]()
    return BestResponse(
        facts.num_domains, regularizer, method.lam, every=method.every, prior=method.prior
    )


def _oracle(method: methods.Oracle, facts: Facts) -> Adversary:
    rounds = max(1, facts.iterations // method.every)
    return OracleRounds(
        facts.num_domains, rounds, eta=method.eta, every=method.every, prior=method.prior
    )


def _groupdro(method: methods.GroupDro, facts: Facts) -> Adversary:
    return GroupDRO(
        facts.num_domains, eta=method.eta, adjustment=method.adjustment, sizes=facts.sizes
    )


def _afl(method: methods.Afl, facts: Facts) -> Adversary:
    return AgnosticAscent(facts.num_domains, eta=method.eta)


def _term(method: methods.Term, facts: Facts) -> Adversary:
    return Tilted(facts.num_domains, method.t, prior=method.prior)


def _cvar(method: methods.Cvar, facts: Facts) -> Adversary:
    return CVaR(facts.num_domains, method.alpha, prior=method.prior)


def _topk(method: methods.Topk, facts: Facts) -> Adversary:
    return TopK(facts.num_domains, method.k)


def _vrex(method: methods.Vrex, facts: Facts) -> Adversary:
    return VarianceRisk(facts.num_domains, method.beta)


BUILDERS: dict[str, Callable[[Any, Facts], Adversary]] = {
    "individual": _individual,
    "even": _even,
    "opt": _opt,
    "ot": _ot,
    "kl": _kl,
    "minimax": _minimax,
    "best_response": _best_response,
    "oracle": _oracle,
    "erm": _erm,
    "groupdro": _groupdro,
    "afl": _afl,
    "term": _term,
    "cvar": _cvar,
    "topk": _topk,
    "regret": _regret,
    "optimistic": _optimistic,
    "vrex": _vrex,
    "retrain": _retrain,
}
