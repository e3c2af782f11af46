"""What can be set: a typed schema of the whole config, and one `validate()` with every range check.

`conf/` holds the values people pick from; this file holds their names, types and ranges. A default
here is the *recorded* default of its key: it is what a run's identity leaves out, so it never
changes once released (change the YAML instead, or add a key with a default that means "as before").
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, TypeVar, Union

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from robustmd.errors import UserError
from robustmd.paths import cache_folder, data_folder

# OmegaConf resolves these annotations at run time and, on Python 3.10, wants typing's own forms.
Number = Union[int, float]  # noqa: UP007
NumberOrAuto = Union[int, float, str]  # noqa: UP007
IndexOrName = Union[int, str]  # noqa: UP007


@dataclass(frozen=True)
class Allowed:
    """A range: in words for the message, and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def one_of(*options: str) -> Allowed:
    return Allowed("one of " + ", ".join(options), lambda value: value in options)


POSITIVE = Allowed("a number > 0", lambda v: _is_number(v) and v > 0)
NOT_NEGATIVE = Allowed("a number >= 0", lambda v: _is_number(v) and v >= 0)
BELOW_ONE = Allowed("a number in [0, 1)", lambda v: _is_number(v) and 0 <= v < 1)
COUNT = Allowed("a whole number >= 1", lambda v: v >= 1)
COUNT_OR_ZERO = Allowed("a whole number >= 0", lambda v: v >= 0)
SEED = Allowed("a whole number from 0 to 2**63 - 1", lambda v: 0 <= v < 2**63)
AUTO_OR_NOT_NEGATIVE = Allowed(
    "auto or a number >= 0", lambda v: v == "auto" or (_is_number(v) and v >= 0)
)
DISTRIBUTION = Allowed(
    "null or a distribution over the domains: numbers >= 0 that sum to 1",
    lambda v: all(_is_number(x) and x >= 0 for x in v) and abs(sum(v) - 1.0) <= 1e-6,
)
ANYTHING = Allowed("anything", lambda v: True)


def setting(default: Any, allowed: Allowed = ANYTHING) -> Any:
    """A key of the config: its recorded default and its range (None passes where the type has it)."""
    return field(default=default, metadata={"allowed": allowed})


# --- data ---------------------------------------------------------------------------------------


@dataclass
class DigitsMini:
    """`data=digits_mini`: handwritten against printed digits; ships with the package."""

    name: str = "digits_mini"
    validation: float = setting(0.0, BELOW_ONE)


@dataclass
class Svhn:
    extra: bool = False


@dataclass
class Digits:
    """`data=digits`: MNIST against SVHN, the paper's second experiment."""

    name: str = "digits"
    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = True
    validation: float = setting(0.0, BELOW_ONE)


# --- backbone -----------------------------------------------------------------------------------


@dataclass
class AlexNet:
    """`backbone=alexnet`: five convolutions for images of 32 px and more."""

    name: str = "alexnet"
    width: float = setting(1.0, POSITIVE)
    hidden: int = setting(0, COUNT_OR_ZERO)


# --- method -------------------------------------------------------------------------------------


@dataclass
class Individual:
    """Trains on one domain, measured on all."""

    name: str = "individual"
    domain: IndexOrName = 0


@dataclass
class Even:
    """Fixed weights: uniform, or the prior q."""

    name: str = "even"
    prior: Optional[list[float]] = setting(None, DISTRIBUTION)  # noqa: UP045


@dataclass
class Opt:
    """Alg. 2 with the L2 regularizer: Mixture-Opt."""

    name: str = "opt"
    lam: float = setting(1.0, POSITIVE)
    c: NumberOrAuto = setting("auto", AUTO_OR_NOT_NEGATIVE)
    mu: Optional[float] = setting(None, POSITIVE)  # noqa: UP045
    prior: Optional[list[float]] = setting(None, DISTRIBUTION)  # noqa: UP045


# --- the rest -----------------------------------------------------------------------------------


@dataclass
class Training:
    iterations: int = setting(5000, COUNT)
    batch_size: int = setting(200, COUNT)
    learning_rate: float = setting(0.01, POSITIVE)
    momentum: float = setting(0.9, BELOW_ONE)
    weight_decay: float = setting(5e-4, NOT_NEGATIVE)
    schedule: str = setting("constant", one_of("constant", "cosine"))


@dataclass
class Evaluation:
    every: int = setting(250, COUNT)
    examples: int = setting(20000, COUNT)
    predictions: bool = True


@dataclass
class Runtime:
    device: str = setting(
        "auto",
        Allowed(
            "auto, cpu, cuda, cuda:N or mps",
            lambda v: (
                v in ("auto", "cpu", "cuda", "mps") or (v[:5] == "cuda:" and v[5:].isdigit())
            ),
        ),
    )
    threads: Optional[int] = setting(None, COUNT)  # noqa: UP045
    deterministic: bool = False


@dataclass
class Logging:
    every: int = setting(10, COUNT)


@dataclass
class Checkpoint:
    every: int = setting(500, COUNT)


@dataclass
class Paths:
    data: Optional[str] = None  # noqa: UP045
    cache: Optional[str] = None  # noqa: UP045
    outputs: str = "outputs"


DATA = {"digits_mini": DigitsMini, "digits": Digits}
BACKBONES = {"alexnet": AlexNet}
METHODS = {"individual": Individual, "even": Even, "opt": Opt}
OPTIONS: Mapping[str, Mapping[str, type]] = {
    "data": DATA,
    "backbone": BACKBONES,
    "method": METHODS,
}
SECTIONS: Mapping[str, type] = {
    "training": Training,
    "evaluation": Evaluation,
    "runtime": Runtime,
    "logging": Logging,
    "checkpoint": Checkpoint,
    "paths": Paths,
}


@dataclass
class Config:
    """The whole of a run's settings, typed; `data`, `backbone`, `method` are one of their options."""

    data: Any
    backbone: Any
    method: Any
    training: Training
    evaluation: Evaluation
    runtime: Runtime
    logging: Logging
    checkpoint: Checkpoint
    paths: Paths
    seed: int = setting(0, SEED)
    force: bool = False
    resume: bool = True


def typed(composed: DictConfig) -> Config:
    """The composed config as a `Config`.

    Every group is merged once more into a fresh schema, so that a key that came in by `+new=…` or
    that the chosen option does not have is refused, and every value has its type.

    Raises:
        UserError: an unknown key or option, or a value of the wrong type; one line.
    """
    plain = OmegaConf.to_container(composed, resolve=True)
    assert isinstance(plain, dict)
    parts: dict[str, Any] = {}
    for group, options in OPTIONS.items():
        given = plain.pop(group, None) or {}
        name = given.get("name")
        if name not in options:
            raise UserError(f"{group}={name}: no such option; allowed: {', '.join(options)}")
        parts[group] = _merged(options[name], given, f"{group}.", f" for {group}={name}")
    for section, schema in SECTIONS.items():
        parts[section] = _merged(schema, plain.pop(section, None) or {}, f"{section}.", "")
    top = {f.name: f.default for f in dataclasses.fields(Config) if f.name not in parts}
    top_schema = dataclasses.make_dataclass(
        "Top", [(name, type(default), default) for name, default in top.items()]
    )
    parts.update(dataclasses.asdict(_merged(top_schema, plain, "", "")))
    config = Config(**parts)
    config.paths = Paths(
        data=str(data_folder(config.paths.data)),
        cache=str(cache_folder(config.paths.cache)),
        outputs=str(Path(config.paths.outputs).expanduser().absolute()),
    )
    return config


Schema = TypeVar("Schema")


def _merged(schema: type[Schema], given: Mapping[str, Any], prefix: str, where: str) -> Schema:
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), given)
        return OmegaConf.to_object(merged)  # type: ignore[return-value]
    except ConfigKeyError as error:
        key = str(error.full_key or error.key)
        allowed = [name for name, _ in _leaves_of(schema) if name != "name"]
        raise UserError(unknown_key(prefix + key, [prefix + a for a in allowed], where)) from None
    except OmegaConfBaseException as error:
        key = str(error.full_key or error.key)
        value = OmegaConf.select(OmegaConf.create(dict(given)), key)
        raise UserError(f"{prefix}{key}={value}: must be {_in_words(schema, key)}") from None


KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}


def _in_words(schema: type, key: str) -> str:
    """What a key's value may be: its range, or else its type."""
    item = next((item for name, item in _leaves_of(schema) if name == key.partition("[")[0]), None)
    if item is None:
        return "a group of keys"
    allowed: Allowed = item.metadata.get("allowed", ANYTHING)
    kind = getattr(item.type, "__name__", item.type)
    return KINDS.get(kind, kind) if allowed is ANYTHING else allowed.words


def unknown_key(key: str, allowed: Sequence[str], where: str = "") -> str:
    """One line for a key that is not there, with the closest that is."""
    near = difflib.get_close_matches(key, allowed, n=1, cutoff=0.8)
    hint = f"; did you mean {near[0]}?" if near else "."
    names = ", ".join(name.rpartition(".")[2] for name in allowed)
    group = key.rpartition(".")[0]
    return f"{key}: no such key{where}{hint} Allowed{' in ' + group if group else ''}: {names}"


def _leaves_of(schema: type) -> list[tuple[str, Any]]:
    return [(key, item) for key, (item, _) in _leaves(schema())]


def _leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, field) of every setting in a dataclass, nested ones included."""
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from _leaves(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, (item, value)


def validate(config: Config, domains: Sequence[str] | None = None) -> None:
    """Check every range; with the domains' names, also what depends on them.

    Raises:
        UserError: one line naming the key, the value and what is allowed.
    """
    for key, (item, value) in _leaves(config):
        allowed: Allowed = item.metadata.get("allowed", ANYTHING)
        if value is not None and not allowed.holds(value):
            raise UserError(f"{key}={value}: must be {allowed.words}")
    if domains is not None:
        _validate_against(config, list(domains))


def _validate_against(config: Config, domains: Sequence[str]) -> None:
    count, names = len(domains), ", ".join(domains)
    batch, prior = config.training.batch_size, getattr(config.method, "prior", None)
    if config.method.name != "individual" and batch < count:
        raise UserError(
            f"training.batch_size={batch}: must be at least the number of domains, "
            f"{count} ({names}): every domain gets an equal share"
        )
    if prior is not None and len(prior) != count:
        raise UserError(
            f"method.prior={prior}: has {len(prior)} entries; must have {count}, one for each of {names}"
        )
    if config.method.name == "individual":
        domain_name(config.method.domain, domains)


def domain_name(domain: int | str, domains: Sequence[str]) -> str:
    """`method.domain` as a name; an index counts from 0 in the data set's order."""
    if isinstance(domain, int) and 0 <= domain < len(domains):
        return domains[domain]
    if domain not in domains:
        raise UserError(
            f"method.domain={domain}: must be one of {', '.join(domains)} "
            f"or an index from 0 to {len(domains) - 1}"
        )
    return str(domain)


def settled(config: Config, domains: Sequence[str]) -> Config:
    """The config checked against the data set's domains, with names in place of indices."""
    validate(config, domains)
    if config.method.name == "individual":
        method = dataclasses.replace(
            config.method, domain=domain_name(config.method.domain, domains)
        )
        return dataclasses.replace(config, method=method)
    return config


def as_dict(config: Config) -> dict[str, Any]:
    """The config as plain data, as config.yaml holds it."""
    return dataclasses.asdict(config)


def number_changing(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config (as plain data) that can change a number: the run's identity.

    Keys equal to their recorded default are left out, so that a key added later does not orphan
    old runs. Not in it: seed (a level of its own), paths, device, threads, logging, checkpoint.
    """
    schemas = {group: OPTIONS[group][config[group]["name"]] for group in OPTIONS}
    schemas |= {"training": Training, "evaluation": Evaluation}
    return {
        group: _without(config[group], dataclasses.asdict(schema()))
        for group, schema in schemas.items()
    }


def _without(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        default = defaults.get(key)
        if isinstance(value, Mapping):
            inner = _without(value, default or {})
            if inner:
                kept[key] = inner
        elif key == "name" or key not in defaults or value != default:
            kept[key] = value
    return kept
