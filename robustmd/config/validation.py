"""Whether a config can be: ranges, keys that exclude each other, what depends on the data."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import NamedTuple

from robustmd.config.ranges import ANYTHING, Allowed
from robustmd.config.settings import OPTIONS, Config, Evaluation, leaves
from robustmd.errors import UserError, listed
from robustmd.metrics import MEASURED, BestBy
from robustmd.registry import AUGMENTATIONS, LOSSES, METHODS, METRICS


class Settled(NamedTuple):
    """A config checked against the data set's domains, and what follows from both.

    config: with names in place of indices, and nothing for a number of domains that is drawn
    anyhow. trained: the K domains that train. unseen: those of `data.unseen`, in no mean or worst
    case of the others. domains_per_batch: M, how many of the K each iteration draws: what was asked
    for; else all, or as many as a batch has examples.
    """

    config: Config
    trained: tuple[str, ...]
    unseen: tuple[str, ...]
    domains_per_batch: int


def shortened(config: Config, overrides: Sequence[str]) -> tuple[Config, str]:
    """The config with a warm-up that is shorter than the run, and a note of it.

    A warm-up that a data set's file chose gives way: it is a fifth of a run that is too short for
    it. One among the user's `overrides` stays, and `validate` refuses it.
    """
    training = config.training
    typed = {text.partition("=")[0].lstrip("+") for text in overrides}
    if not 1 <= training.iterations <= training.warmup or "training.warmup" in typed:
        return config, ""
    warmup = training.iterations // 5
    note = (
        f"training.warmup={warmup}: a fifth of training.iterations={training.iterations}; data="
        f"{config.data.name} comes with {training.warmup}, which is no shorter than the run"
    )
    return dataclasses.replace(config, training=dataclasses.replace(training, warmup=warmup)), note


def validate(config: Config) -> None:
    """Check every range. Raises UserError: one line with the key, the value and what is allowed."""
    for name, (item, value) in leaves(config):
        allowed: Allowed = item.metadata.get("allowed", ANYTHING)
        if value is not None and not allowed.holds(value):
            near = difflib.get_close_matches(str(value).lower(), allowed.values, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"{name}={value}: must be {allowed.words}{hint}")
    for group in OPTIONS:
        option = getattr(config, group)
        try:
            option.check()
        except ValueError as error:
            raise UserError(f"{group}={option.name}: {error}") from None
    config.training.check()
    if config.training.ema is not None and METHODS.flag(config.method.name, "averages"):
        raise UserError(
            f"training.ema={config.training.ema}: method={config.method.name} returns the mean of "
            "its iterates, which is measured in its place; leave it out"
        )
    _check_best_by(config.evaluation)
    training = config.training
    for key_, names, known in (
        ("evaluation.metrics", config.evaluation.metrics, METRICS),
        ("training.loss", [training.loss], LOSSES),
        ("data.augment", [config.data.augment], ["none", *AUGMENTATIONS]),
    ):
        for name in (name for name in names if name not in known):
            raise UserError(
                f"{key_}={name}: must be one of {', '.join(known)}; one of your own comes with "
                "imports=[MODULE]"
            )
    if "loss" in config.evaluation.metrics and training.loss != "cross_entropy":
        raise UserError(
            f"evaluation.metrics=[loss]: training.loss={training.loss} is measured by that name; "
            "leave it out"
        )
    if training.label_smoothing and training.loss != "cross_entropy":
        raise UserError(
            f"training.label_smoothing={training.label_smoothing}: is of cross_entropy, which "
            f"training.loss={training.loss} is not; leave it out"
        )


def _check_best_by(evaluation: Evaluation) -> None:
    """Raises UserError for a rule that cannot be, or of what is not measured."""
    try:
        chosen = BestBy.of(evaluation.best_by)
    except ValueError as error:
        raise UserError(f"evaluation.best_by={evaluation.best_by}: {error}") from None
    if chosen.metric not in (*MEASURED, *evaluation.metrics):
        raise UserError(
            f"evaluation.best_by={chosen}: {chosen.metric} is not measured; add it with "
            f"evaluation.metrics=[{chosen.metric}]"
        )


def settled(config: Config, domains: Sequence[str]) -> Settled:
    """The config, which `validate` has let pass, with what depends on the domains' names checked
    and settled. Raises UserError."""
    unseen = tuple(name for name in domains if name in config.data.unseen)
    wanted = config.method.trained(domains)
    trained = tuple(name for name in wanted if name not in unseen)
    _check_unseen(config, domains, wanted, trained)
    count, batch = len(trained), config.training.batch_size
    asked = config.training.domains_per_batch
    if count > 1 and (asked or 1) > min(count, batch):
        raise UserError(
            f"training.domains_per_batch={asked}: must be at most the number of domains, {count}, "
            f"and training.batch_size={batch}; leave it out for as many as there can be"
        )
    for item in dataclasses.fields(config.method):
        value = getattr(config.method, item.name)
        if item.metadata.get("per_domain") and value is not None and len(value) != count:
            raise UserError(
                f"method.{item.name}={value}: has {len(value)} entries; must have {count}, "
                f"one for each of {listed(trained)}"
            )
    most = min(batch, count)
    drawn = min(asked or most, most)
    training = dataclasses.replace(
        config.training, domains_per_batch=None if drawn == most else asked
    )
    method, backbone = config.method.settled(trained), config.backbone.settled(trained)
    config = dataclasses.replace(config, training=training, method=method, backbone=backbone)
    return Settled(config, trained, unseen, drawn)


def _check_unseen(
    config: Config, domains: Sequence[str], wanted: Sequence[str], trained: Sequence[str]
) -> None:
    """Raises UserError for an unknown domain in `data.unseen`, or where too few of those that the
    method wants are left to train on."""
    written = f"data.unseen=[{','.join(config.data.unseen)}]"
    unknown = [name for name in config.data.unseen if name not in domains]
    if unknown:
        raise UserError(f"{written}: no domain {unknown[0]}; must be of {listed(domains)}")
    if not trained:
        raise UserError(f"{written}: method={config.method.name} trains on {listed(wanted)}")
    if len(trained) < min(2, len(wanted)):
        raise UserError(
            f"{written}: leaves {len(trained)} of {len(wanted)} domains to train on; "
            "a mixture needs two"
        )
