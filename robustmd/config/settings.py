"""What can be set: a typed schema of the whole config, and one `validate()` with every range check.

`conf/` holds the values people pick from; this file holds their names, types and ranges. A default
here is the *recorded* default of its key: it is what a run's identity leaves out, so it never
changes once released (change the YAML instead, or add a key with a default that means "as before").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import robustmd.backbones
import robustmd.data_sets
import robustmd.methods
import robustmd.metrics  # noqa: F401 - each registers its options
from robustmd.config.ranges import (
    ANYTHING,
    BELOW_ONE,
    COUNT,
    DEVICE,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    THREADS,
    Allowed,
    one_of,
    setting,
)
from robustmd.errors import UserError, listed
from robustmd.registry import BACKBONES, DATA, METHODS, METRICS

TUNED = ("learning_rate", "momentum", "weight_decay")  # of training: each method has its best


@dataclass
class Training:
    iterations: int = setting(5000, COUNT)
    batch_size: int = setting(200, COUNT)
    domains_per_batch: Optional[int] = setting(None, COUNT)  # noqa: UP045
    learning_rate: float = setting(0.01, POSITIVE)
    momentum: float = setting(0.9, BELOW_ONE)
    weight_decay: float = setting(5e-4, NOT_NEGATIVE)
    schedule: str = setting("constant", one_of("constant", "cosine"))


@dataclass
class Evaluation:
    every: int = setting(250, COUNT)
    examples: int = setting(20000, COUNT)
    predictions: bool = True
    metrics: list[str] = field(default_factory=list)


@dataclass
class Runtime:
    device: str = setting("auto", DEVICE)
    precision: str = setting("fp32", one_of("fp32", "tf32", "bf16", "auto"))
    threads: Optional[int] = setting(None, THREADS)  # noqa: UP045
    graph: str = setting("auto", one_of("auto", "off"))
    compile: bool = False
    deterministic: bool = False


@dataclass
class Logging:
    every: int = setting(10, COUNT)


@dataclass
class Checkpoint:
    every: int = setting(500, COUNT)
    seconds: Optional[float] = setting(None, POSITIVE)  # noqa: UP045


@dataclass
class Paths:
    data: Optional[str] = None  # noqa: UP045
    cache: Optional[str] = None  # noqa: UP045
    outputs: str = "outputs"

    def folder(self, key: str) -> Path:
        """`data` or `cache`. Raises UserError: not given, and the user has no home for it."""
        found: str | None = getattr(self, key)
        if found is None:
            raise UserError(f"paths.{key}: is needed, as paths.{key}=FOLDER: there is no HOME")
        return Path(found)


OPTIONS: Mapping[str, Mapping[str, type]] = {
    "data": DATA,
    "backbone": BACKBONES,
    "method": METHODS,
}
GROUPS = (*OPTIONS, "training", "evaluation", "runtime", "experiment")  # folders of conf/
SECTIONS: Mapping[str, type] = {
    "training": Training,
    "evaluation": Evaluation,
    "runtime": Runtime,
    "logging": Logging,
    "checkpoint": Checkpoint,
    "paths": Paths,
}


@dataclass(kw_only=True)
class Top:
    """The keys that are in no group."""

    seed: int = setting(0, SEED)
    force: bool = False
    resume: bool = True
    imports: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Config(Top):
    """The whole of a run's settings, typed; `data`, `backbone`, `method` are one option each."""

    data: Any
    backbone: Any
    method: Any
    training: Training
    evaluation: Evaluation
    runtime: Runtime
    logging: Logging
    checkpoint: Checkpoint
    paths: Paths


def leaves_of(schema: type) -> list[tuple[str, Any]]:
    return [(key, item) for key, (item, _) in leaves(schema())]


def leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, field) of every setting in a dataclass, nested ones included."""
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from leaves(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, (item, value)


def validate(config: Config, domains: Sequence[str] | None = None) -> None:
    """Check every range; with the domains' names, also what depends on them.

    Raises:
        UserError: one line naming the key, the value and what is allowed.
    """
    for key, (item, value) in leaves(config):
        allowed: Allowed = item.metadata.get("allowed", ANYTHING)
        if value is not None and not allowed.holds(value):
            raise UserError(f"{key}={value}: must be {allowed.words}")
    for option in (config.data, config.backbone, config.method):
        option.check()
    for name in config.evaluation.metrics:
        if name not in METRICS:
            raise UserError(
                f"evaluation.metrics: no metric {name}; there are {', '.join(METRICS)}; one of "
                "your own comes with imports=[MODULE]"
            )
    if domains is not None:
        _validate_against(config, list(domains))


def trained_domains(config: Config, domains: Sequence[str]) -> tuple[str, ...]:
    """The domains that the model trains on: those of the method, but not `data.unseen`."""
    unseen = unseen_domains(config, domains)
    return tuple(name for name in config.method.trained(domains) if name not in unseen)


def unseen_domains(config: Config, domains: Sequence[str]) -> tuple[str, ...]:
    """Those of `data.unseen`: measured beside the others, and in no mean or worst case of them."""
    return tuple(name for name in domains if name in config.data.unseen)


def _validate_against(config: Config, domains: Sequence[str]) -> None:
    _validate_unseen(config, domains)
    trained = trained_domains(config, domains)
    count, batch = len(trained), config.training.batch_size
    wanted = config.training.domains_per_batch or 1
    if count > 1 and wanted > min(count, batch):
        raise UserError(
            f"training.domains_per_batch={wanted}: must be at most the number of domains, {count}, "
            f"and training.batch_size={batch}; leave it out for as many as there can be"
        )
    for item in dataclasses.fields(config.method):
        value = getattr(config.method, item.name)
        if item.metadata.get("per_domain") and value is not None and len(value) != count:
            raise UserError(
                f"method.{item.name}={value}: has {len(value)} entries; must have {count}, "
                f"one for each of {listed(trained)}"
            )


def domains_per_batch(config: Config, count: int) -> int:
    """M, how many of the K = `count` domains that train each iteration draws: what was asked for;
    else all, or as many as a batch has examples."""
    return min(config.training.domains_per_batch or count, config.training.batch_size, count)


def _validate_unseen(config: Config, domains: Sequence[str]) -> None:
    unseen = config.data.unseen
    written = f"data.unseen=[{','.join(unseen)}]"
    unknown = [name for name in unseen if name not in domains]
    if unknown:
        raise UserError(f"{written}: no domain {unknown[0]}; must be of {listed(domains)}")
    wanted, trained = config.method.trained(domains), trained_domains(config, domains)
    if not trained:
        raise UserError(f"{written}: method={config.method.name} trains on {listed(wanted)}")
    if len(trained) < min(2, len(wanted)):
        raise UserError(
            f"{written}: leaves {len(trained)} of {len(wanted)} domains to train on; "
            "a mixture needs two"
        )


def settled(config: Config, domains: Sequence[str]) -> Config:
    """The config checked against the data set's domains, with names in place of indices, weights in
    place of a point's number, and nothing for a number of domains that is drawn anyhow."""
    validate(config, domains)
    trained = trained_domains(config, domains)
    config = _with_domains_drawn(config, len(trained))
    return dataclasses.replace(config, method=config.method.settled(trained))


def _with_domains_drawn(config: Config, count: int) -> Config:
    whatever = dataclasses.replace(config.training, domains_per_batch=None)
    unasked = dataclasses.replace(config, training=whatever)
    same = domains_per_batch(config, count) == domains_per_batch(unasked, count)
    return unasked if same else config


def as_dict(config: Config) -> dict[str, Any]:
    """The config as plain data, as config.yaml holds it."""
    return dataclasses.asdict(config)
