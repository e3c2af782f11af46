"""From a checked config and the domains' names to what a run trains on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from robustmd.config.grammar import parsed
from robustmd.config.ranges import facts_of
from robustmd.config.settings import Config
from robustmd.errors import UserError, listed


class Resolved(NamedTuple):
    """A config with what depends on the domains in place: M is null where that means the same."""

    config: Config
    trained: tuple[str, ...]
    unseen: tuple[str, ...]
    domains_per_batch: int


def resolve(config: Config, domains: Sequence[str]) -> Resolved:
    """The config with what depends on the domains' names checked
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
    for name, item in type(config.method).model_fields.items():
        value = getattr(config.method, name)
        if facts_of(item).get("per_domain") and value is not None and len(value) != count:
            raise UserError(
                f"method.{name}={value}: has {len(value)} entries; must have {count}, "
                f"one for each of {listed(trained)}"
            )
    most = min(batch, count)
    drawn = min(asked or most, most)
    kept = {"domains_per_batch": None if drawn == most else asked}
    config = config.model_copy(
        update={
            "training": config.training.model_copy(update=kept),
            "method": config.method.settled(trained),
            "backbone": config.backbone.settled(trained),
        }
    )
    return Resolved(config, trained, unseen, drawn)


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


def with_shorter_warmup(config: Config, overrides: Sequence[str]) -> tuple[Config, str]:
    """The config with a warm-up that is shorter than the run, and a note of it.

    A warm-up that a data set's file chose gives way: it is a fifth of a run that is too short for
    it. Raises UserError: one among the user's `overrides` is too long.
    """
    training = config.training
    if training.warmup < training.iterations:
        return config, ""
    if "training.warmup" in parsed(overrides):
        raise UserError(
            f"training.warmup={training.warmup}: must be less than training.iterations="
            f"{training.iterations}"
        )
    warmup = training.iterations // 5
    note = (
        f"training.warmup={warmup}: a fifth of training.iterations={training.iterations}; data="
        f"{config.data.name} comes with {training.warmup}, which is no shorter than the run"
    )
    shorter = training.model_copy(update={"warmup": warmup})
    return config.model_copy(update={"training": shorter}), note
