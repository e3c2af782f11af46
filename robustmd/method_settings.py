"""What each method can be set to: the `method` group's options, one class each.

A default here is the recorded default of its key; see settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from robustmd.errors import UserError
from robustmd.ranges import (
    AUTO_OR_NOT_NEGATIVE,
    COST,
    COUNT,
    COUNT_OR_ZERO,
    DISTRIBUTION,
    NOT_NEGATIVE,
    NUMBER,
    NUMBERS,
    POSITIVE,
    SHARE_OR_ALL,
    one_of,
    setting,
)

# OmegaConf resolves annotations at run time and, on Python 3.10, wants typing's own forms.
IndexOrName = Union[int, str]  # noqa: UP007
NumberOrAuto = Union[int, float, str]  # noqa: UP007
OptionalNumber = Optional[float]  # noqa: UP045
OptionalCount = Optional[int]  # noqa: UP045
OptionalText = Optional[str]  # noqa: UP045
Prior = Optional[list[float]]  # noqa: UP045
Cost = Any  # OmegaConf types no nested lists; the range does

ASCENT_STEPS = ("theory", "constant")
EXPONENTIATED_STEPS = ("lemma1", "theorem1", "constant")
REGULARIZERS = ("none", "l2", "kl", "ot")


@dataclass
class Individual:
    """Trains on one domain, measured on all."""

    name: str = "individual"
    domain: IndexOrName = 0


@dataclass
class Even:
    """Fixed weights: uniform, the prior q, or a point of the static front, which becomes q."""

    name: str = "even"
    prior: Prior = setting(None, DISTRIBUTION)
    point: OptionalCount = setting(None, COUNT_OR_ZERO)


@dataclass
class Opt:
    """Alg. 2 with the L2 regularizer: Mixture-Opt."""

    name: str = "opt"
    lam: float = setting(1.0, POSITIVE)
    c: NumberOrAuto = setting("auto", AUTO_OR_NOT_NEGATIVE)
    mu: OptionalNumber = setting(None, POSITIVE)
    prior: Prior = setting(None, DISTRIBUTION)
    step: str = setting("theory", one_of(*ASCENT_STEPS))
    eta: OptionalNumber = setting(None, POSITIVE)


@dataclass
class Kl(Opt):
    """Mirror ascent with the KL regularizer."""

    name: str = "kl"


@dataclass
class Ot(Opt):
    """Alg. 2 with the entropic optimal-transport regularizer: Mixture-OT."""

    name: str = "ot"
    nu: float = setting(1.0, POSITIVE)
    cost: Cost = setting(None, COST)
    sweeps: int = setting(10, COUNT)


@dataclass
class Minimax:
    """Alg. 1: multiplicative weights, unregularised, with averaged iterates."""

    name: str = "minimax"
    step: str = setting("lemma1", one_of(*EXPONENTIATED_STEPS))
    gamma: OptionalNumber = setting(None, POSITIVE)
    eta: OptionalNumber = setting(None, POSITIVE)
    prior: Prior = setting(None, DISTRIBUTION)


@dataclass
class BestResponse:
    """Theorem 4: the exact best response to the full-data losses."""

    name: str = "best_response"
    regularizer: str = setting("l2", one_of(*REGULARIZERS))
    lam: float = setting(1.0, POSITIVE)
    nu: float = setting(1.0, POSITIVE)
    cost: Cost = setting(None, COST)
    every: int = setting(100, COUNT)
    prior: Prior = setting(None, DISTRIBUTION)


@dataclass
class Oracle:
    """Chen et al. (2017) as the paper runs it: rounds of SGD at fixed weights."""

    name: str = "oracle"
    every: int = setting(100, COUNT)
    eta: OptionalNumber = setting(None, POSITIVE)
    prior: Prior = setting(None, DISTRIBUTION)


@dataclass
class Erm:
    """Fixed weights: the domains' shares of the training examples."""

    name: str = "erm"


@dataclass
class GroupDro:
    """Sagawa et al. (2020): exponentiated gradient, with size adjustment."""

    name: str = "groupdro"
    eta: float = setting(0.01, POSITIVE)
    adjustment: float = setting(0.0, NOT_NEGATIVE)


@dataclass
class Afl:
    """Mohri et al. (2019): projected ascent without a regularizer, with averaged iterates."""

    name: str = "afl"
    eta: float = setting(0.01, POSITIVE)


@dataclass
class Term:
    """Li et al. (2021): tilted losses."""

    name: str = "term"
    t: float = setting(1.0, NUMBER)
    prior: Prior = setting(None, DISTRIBUTION)


@dataclass
class Cvar:
    """The mean loss of the worst share of the domains."""

    name: str = "cvar"
    alpha: float = setting(0.5, SHARE_OR_ALL)
    prior: Prior = setting(None, DISTRIBUTION)


@dataclass
class Topk:
    """The mean of the k largest losses."""

    name: str = "topk"
    k: int = setting(1, COUNT)


@dataclass
class Regret(Opt):
    """opt on the excess over the best loss that each domain can have."""

    name: str = "regret"
    reference: Prior = setting(None, NUMBERS)


@dataclass
class Optimistic(Opt):
    """opt on extrapolated losses."""

    name: str = "optimistic"


@dataclass
class Vrex:
    """Krueger et al. (2021): mean and variance of the losses."""

    name: str = "vrex"
    beta: float = setting(1.0, NOT_NEGATIVE)


@dataclass
class Retrain:
    """Fixed weights: those that another run had on average."""

    name: str = "retrain"
    run: OptionalText = None
    weights: Prior = setting(None, DISTRIBUTION)


METHODS: Mapping[str, type] = {
    "individual": Individual,
    "even": Even,
    "opt": Opt,
    "ot": Ot,
    "kl": Kl,
    "minimax": Minimax,
    "best_response": BestResponse,
    "oracle": Oracle,
    "erm": Erm,
    "groupdro": GroupDro,
    "afl": Afl,
    "term": Term,
    "cvar": Cvar,
    "topk": Topk,
    "regret": Regret,
    "optimistic": Optimistic,
    "vrex": Vrex,
    "retrain": Retrain,
}


def check_method(method: Any) -> None:
    """What depends on two keys of one method.

    Raises:
        UserError: a constant step without its size, or a value that nothing would read.
    """
    if method.name == "retrain" and None not in (method.run, method.weights):
        raise UserError(f"method.run={method.run}: method.weights is given as well; leave one out")
    if method.name == "even" and None not in (method.point, method.prior):
        raise UserError(
            f"method.point={method.point}: method.prior is given as well; leave one out"
        )
    step, regularizer = getattr(method, "step", None), getattr(method, "regularizer", None)
    if step == "constant" and method.eta is None:
        raise UserError("method.eta=null: method.step=constant needs its size, a number > 0")
    unread = [
        ("eta", step not in (None, "constant"), "only method.step=constant has it"),
        ("c", step == "constant", "method.step=constant has none"),
        ("gamma", step == "constant", "method.step=constant has none"),
        (
            "mu",
            step == "constant" or getattr(method, "c", "auto") != "auto",
            "only c=auto reads it",
        ),
        ("nu", regularizer not in (None, "ot"), "only method.regularizer=ot has it"),
        ("cost", regularizer not in (None, "ot"), "only method.regularizer=ot has it"),
        ("prior", regularizer == "none", "method.regularizer=none has none"),
    ]
    for key, has_no_effect, why in unread:
        value = getattr(method, key, None)
        if has_no_effect and value != getattr(type(method), key, None):
            raise UserError(f"method.{key}={value}: {why}; leave it out")
