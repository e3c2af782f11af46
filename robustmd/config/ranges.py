"""Keys of settings, and their ranges: each in words, for the message, and as a test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field


@dataclass(frozen=True)
class Allowed:
    """A range: in words for the message, as a test, and its values where they can be listed."""

    words: str
    holds: Callable[[Any], bool]
    values: tuple[str, ...] = ()


def is_number(value: Any) -> bool:
    """A finite number; a truth value is none."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) <= sys.float_info.max


def one_of(*options: str) -> Allowed:
    return Allowed("one of " + ", ".join(options), lambda value: value in options, options)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(is_number(x) for x in value)


def _are_sigmas(value: list[float], least: int = 1) -> bool:
    different = len({f"{x:g}" for x in value}) == len(value)  # they name the domains
    return len(value) >= least and different and all(is_number(x) and x >= 0 for x in value)


def _is_cost(value: Any) -> bool:
    rows = value if isinstance(value, list) else [None]
    square = all(isinstance(row, list) and len(row) == len(rows) for row in rows)
    return square and all(is_number(x) and x >= 0 for row in value for x in row)


# Smaller ones are 0 once they are squared, as λ is in c*.
POSITIVE = Allowed("a number > 0", lambda v: is_number(v) and v > 1e-150)
# The optimizers take float32.
RATE = Allowed("a number > 0, below 1e38", lambda v: is_number(v) and 1e-150 < v < 1e38)
DECAY = Allowed("a number >= 0, below 1e38", lambda v: is_number(v) and 0 <= v < 1e38)
NOT_NEGATIVE = Allowed("a number >= 0", lambda v: is_number(v) and v >= 0)
BELOW_ONE = Allowed("a number in [0, 1)", lambda v: is_number(v) and 0 <= v < 1)
SHARE = Allowed("a number in (0, 1)", lambda v: is_number(v) and 0 < v < 1)
SIZES = Allowed(
    "null or a list of whole numbers >= 1, one for each domain of the data",
    lambda v: bool(v) and all(x >= 1 for x in v),
)
NAMES = Allowed("a list of domains' names, as [a,b]", lambda v: all(isinstance(x, str) for x in v))
TRACKERS = Allowed("a list of trackers, as [tensorboard,mlflow]", NAMES.holds)
MODULES = Allowed("a list of modules, as [mine]", NAMES.holds)
CLASSES = Allowed("a list of classes' names, as [a,b]", NAMES.holds)
NUMBER = Allowed("a number", is_number)
SHARE_OR_ALL = Allowed("a number in (0, 1]", lambda v: is_number(v) and 0 < v <= 1)
NUMBERS = Allowed("null or a list of numbers, one for each domain", _are_numbers)
SIGMAS = Allowed(
    "two or more different numbers >= 0, as [0,4,8,12]", lambda v: _are_sigmas(v, least=2)
)
SOME_SIGMAS = Allowed("one or more different numbers >= 0, as [0,4]", _are_sigmas)
ANGLES = Allowed(
    "one or more different degrees in [0, 360), as [0,15,30]",
    lambda v: _are_sigmas(v) and all(float(f"{x:g}") < 360 for x in v),  # as they are named
)
IMAGE_SIDE = Allowed("a whole number from 1 to 4096", lambda v: 1 <= v <= 4096)
COUNT = Allowed("a whole number >= 1", lambda v: v >= 1)
THREADS = Allowed("a whole number >= 1, at most 1024", lambda v: 1 <= v <= 1024)
COUNT_OR_ZERO = Allowed("a whole number >= 0", lambda v: v >= 0)
SEED = Allowed("a whole number from 0 to 2**63 - 1", lambda v: 0 <= v < 2**63)
CONSTANT_OF_STEP = Allowed(
    "auto, centred or a number >= 0",
    lambda v: v in ("auto", "centred") if isinstance(v, str) else is_number(v) and v >= 0,
)
DISTRIBUTION = Allowed(
    "null or a distribution over the domains: numbers >= 0 that sum to 1",
    lambda v: all(is_number(x) and x >= 0 for x in v) and abs(sum(v) - 1.0) <= 1e-6,
)
BETAS = Allowed(
    "null or two numbers in [0, 1), as [0.9,0.999]",
    lambda v: _are_numbers(v) and len(v) == 2 and all(map(BELOW_ONE.holds, v)),
)
MILESTONES = Allowed(
    "a list of iterations, ascending, as [3000,4000]",
    lambda v: all(x >= 1 for x in v) and v == sorted(set(v)),
)
COST = Allowed("null or a square matrix of numbers >= 0, one row for each domain", _is_cost)
WEIGHTS = Allowed("imagenet, none or the path of a state dict", bool)
PUBLISHED_WEIGHTS = Allowed("none, a name of the library's or the path of a state dict", bool)
RGB = Allowed(
    "null or three numbers, of red, green and blue", lambda v: _are_numbers(v) and len(v) == 3
)
DEVICE = Allowed(
    "auto, cpu, cuda, cuda:N or mps",
    lambda v: v in ("auto", "cpu", "cuda", "mps") or (v[:5] == "cuda:" and v[5:].isdigit()),
)
ANYTHING = Allowed("anything", lambda v: True)


@dataclass(frozen=True)
class Tune:
    """Where the fair protocol, or a search, draws a key from: `kind` "log" or "uniform" over
    [low, high], or "choice" of `ends`."""

    kind: str
    ends: tuple[Any, ...]


def log(low: float, high: float) -> Tune:
    return Tune("log", (low, high))


def uniform(low: float, high: float) -> Tune:
    return Tune("uniform", (low, high))


def choice(*values: Any) -> Tune:
    return Tune("choice", values)


def key(
    default: Any,
    allowed: Allowed = ANYTHING,
    help: str = "",
    *,
    tune: Tune | None = None,
    per_domain: bool = False,
    place: bool = False,
) -> Any:
    """A key of the config: its recorded default, its range, and what the fair protocol draws.

    Args:
        default: what a run's identity leaves out, so it never changes once released; a list or a
            dict is copied for every instance.
        allowed: the range; null passes where the type allows it.
        help: what it means, in one line that begins small and ends without a full stop: what
            `robustmd explain` says, and the documentation's tables.
        tune: the range that configurations of the fair protocol are drawn from; None: not tuned.
        per_domain: the value is a list with one entry for each domain that trains.
        place: the value says where the data lies, which is not what it is: the data's fingerprint
            stands for it in a run's identity.
    """
    facts: Any = {"allowed": allowed, "tune": tune, "per_domain": per_domain, "place": place}
    return Field(default, description=help, json_schema_extra=facts)


def facts_of(item: Any) -> dict[str, Any]:
    """What `key` was told of a model's field; nothing of one with a plain default."""
    facts: dict[str, Any] = item.json_schema_extra or {}
    return facts


def allowed_of(item: Any) -> Allowed:
    """The range of a model's field."""
    allowed: Allowed = facts_of(item).get("allowed", ANYTHING)
    return allowed
