"""From the `method` group to an adversary: the one place that knows both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robustmd import method_settings as methods
from robustmd.adversary import (
    KL,
    L2,
    BestResponse,
    EntropicOT,
    Fixed,
    MirrorAscent,
    MultiplicativeWeights,
    OracleRounds,
    ProjectedAscent,
    Regularizer,
)
from robustmd.adversary.base import Adversary
from robustmd.errors import UserError

RULES_WITH_REGRET = frozenset({"opt", "ot", "kl", "minimax"})  # they play against every batch
RETURNS_AVERAGE = frozenset({"minimax"})  # Alg. 1 returns W̄ and p̄


def build_adversary(method: Any, num_domains: int, iterations: int) -> Adversary:
    """The rule that `method` names.

    Args:
        method: one of `method_settings.METHODS`, checked.
        num_domains: K, the domains that train.
        iterations: T.

    Raises:
        UserError: the rule refuses a combination of its settings.
    """
    try:
        return BUILDERS[method.name](method, num_domains, iterations)
    except ValueError as error:
        raise UserError(f"method={method.name}: {error}") from None


def _individual(_: methods.Individual, num_domains: int, __: int) -> Adversary:
    return Fixed(num_domains)


def _even(method: methods.Even, num_domains: int, _: int) -> Adversary:
    return Fixed(num_domains, prior=method.prior)


def _ascent(method: methods.Opt, num_domains: int, iterations: int) -> dict[str, Any]:
    """What the three regularised ascents share."""
    return {
        "num_domains": num_domains,
        "lam": method.lam,
        "c": method.c,
        "mu": method.mu,
        "total_steps": iterations,
        "prior": method.prior,
        "step": method.step,
        "eta": method.eta,
    }


def _opt(method: methods.Opt, num_domains: int, iterations: int) -> Adversary:
    return ProjectedAscent(regularizer=L2(), **_ascent(method, num_domains, iterations))


def _ot(method: methods.Ot, num_domains: int, iterations: int) -> Adversary:
    transport = EntropicOT(method.cost, method.nu, method.sweeps)
    return ProjectedAscent(regularizer=transport, **_ascent(method, num_domains, iterations))


def _kl(method: methods.Kl, num_domains: int, iterations: int) -> Adversary:
    return MirrorAscent(**_ascent(method, num_domains, iterations))


def _minimax(method: methods.Minimax, num_domains: int, iterations: int) -> Adversary:
    return MultiplicativeWeights(
        num_domains,
        step=method.step,  # type: ignore[arg-type]
        total_steps=iterations,
        gamma=method.gamma,
        eta=method.eta,
        prior=method.prior,
    )


def _best_response(method: methods.BestResponse, num_domains: int, _: int) -> Adversary:
    regularizers: dict[str, Callable[[], Regularizer | None]] = {
        "none": lambda: None,
        "l2": L2,
        "kl": KL,
        "ot": lambda: EntropicOT(method.cost, method.nu),
    }
    regularizer = regularizers[method.regularizer]()
    return BestResponse(
        num_domains, regularizer, method.lam, every=method.every, prior=method.prior
    )


def _oracle(method: methods.Oracle, num_domains: int, iterations: int) -> Adversary:
    rounds = max(1, iterations // method.every)
    return OracleRounds(num_domains, rounds, eta=method.eta, every=method.every, prior=method.prior)


BUILDERS: dict[str, Callable[[Any, int, int], Adversary]] = {
    "individual": _individual,
    "even": _even,
    "opt": _opt,
    "ot": _ot,
    "kl": _kl,
    "minimax": _minimax,
    "best_response": _best_response,
    "oracle": _oracle,
}
