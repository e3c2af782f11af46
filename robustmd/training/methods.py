"""From the `method` group to an adversary: the one place that knows both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robustmd import settings
from robustmd.adversary import L2, Fixed, ProjectedAscent
from robustmd.adversary.base import Adversary


def build_adversary(method: Any, num_domains: int, iterations: int) -> Adversary:
    """The rule that `method` names.

    Args:
        method: one of `settings.METHODS`, checked.
        num_domains: K, the domains that train.
        iterations: T.
    """
    return BUILDERS[method.name](method, num_domains, iterations)


def _individual(_: settings.Individual, num_domains: int, __: int) -> Adversary:
    return Fixed(num_domains)


def _even(method: settings.Even, num_domains: int, _: int) -> Adversary:
    return Fixed(num_domains, prior=method.prior)


def _opt(method: settings.Opt, num_domains: int, iterations: int) -> Adversary:
    return ProjectedAscent(
        num_domains,
        regularizer=L2(),
        lam=method.lam,
        c=method.c,
        mu=method.mu,
        total_steps=iterations,
        prior=method.prior,
    )


BUILDERS: dict[str, Callable[[Any, int, int], Adversary]] = {
    "individual": _individual,
    "even": _even,
    "opt": _opt,
}
