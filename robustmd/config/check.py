"""From a plain config to a checked one: unknown keys, types, ranges, and what goes together."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from robustmd.config.compose import SWEEP, compose, put
from robustmd.config.grammar import parsed
from robustmd.config.keys import all_keys, in_words, meant
from robustmd.config.paths import folder, whole
from robustmd.config.ranges import ANYTHING, allowed_of
from robustmd.config.settings import OPTIONS, SECTIONS, Config, Paths
from robustmd.errors import UserError
from robustmd.metrics import MEASURED, BestBy
from robustmd.registry import AUGMENTATIONS, LOSSES, METHODS, METRICS, Settings


def make_config(arguments: Sequence[str]) -> Config:
    """The config that a user types as key=value. Raises UserError."""
    return check(compose(arguments))


def check(plain: Mapping[str, Any]) -> Config:
    """A plain config as a `Config`.

    Raises:
        UserError: an unknown key or option, a value of the wrong type or out of its range, or
            settings that do not go together; one line with the key, the value and what is allowed.
    """
    parts = {key: value for key, value in plain.items() if key != SWEEP}
    _check_sizes(parts)
    for group, options in OPTIONS.items():
        values = parts.get(group) or {}
        name = str(values.get("name")) if isinstance(values, Mapping) else str(values)
        if name not in options:
            raise UserError(
                f"{group}={name}: no such option; allowed: {', '.join(options.offered)}; one of "
                "your own comes with imports=[MODULE]"
            )
        parts[group] = _made(options[name], values, f"{group}.", f" for {group}={name}")
    for section, schema in SECTIONS.items():
        parts[section] = _made(schema, parts.get(section) or {}, f"{section}.")
    paths = parts["paths"]
    parts["paths"] = Paths(
        data=folder("data", paths.data),
        cache=folder("cache", paths.cache),
        outputs=whole("paths.outputs", paths.outputs),
    )
    config = _made(Config, parts, "")
    _check_text(config)
    _check_parts(config)
    return config


def _made(schema: type[Any], values: Any, prefix: str, where: str = "") -> Any:
    """The model of a part's values; `where` follows the name of a key that is not there."""
    if not isinstance(values, Mapping):
        raise UserError(f"{prefix.rstrip('.')}={str(values)[:40]}: must be a group of keys")
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
    unknown = [one for one in found if one["type"] == "extra_forbidden"]
    first = (unknown or found)[0]
    if not first["loc"]:  # of two keys
        raise UserError(f"{where.removeprefix(' for ')}: {first['ctx']['error']}")
    of, name, value = schema, str(first["loc"][0]), values.get(first["loc"][0])
    for part in first["loc"][1:]:
        inner = of.model_fields[name.rpartition(".")[2]].annotation
        if not (isinstance(inner, type) and issubclass(inner, Settings)):
            break  # of a list's element, say
        of, name = inner, f"{name}.{part}"
        value = value.get(part) if isinstance(value, Mapping) else value
    if unknown:
        raise UserError(unknown_key(prefix + name, _names(schema, prefix), where))
    item = of.model_fields[name.rpartition(".")[2]]
    allowed = allowed_of(item)
    words = in_words(item.annotation) if allowed is ANYTHING else allowed.words
    near = difflib.get_close_matches(str(value).lower(), allowed.values, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UserError(f"{prefix}{name}={value}: must be {words}{hint}")


def _names(schema: type[Settings], prefix: str) -> list[str]:
    names = []
    for name, item in schema.model_fields.items():
        kind = item.annotation
        if isinstance(kind, type) and issubclass(kind, Settings) and prefix:
            names += _names(kind, f"{prefix}{name}.")
        elif name != "name" and not item.exclude:
            names.append(prefix + name)
    return names


def unknown_key(key: str, allowed: Sequence[str], where: str = "") -> str:
    """One line for a key that is not there, with the closest that is."""
    near = meant(key, allowed) or meant(key, (one.name for one in all_keys()))
    hint = f"; did you mean {near}?" if near not in (None, key) else "."
    names = ", ".join(name.rpartition(".")[2] for name in allowed)
    group = key.rpartition(".")[0]
    return f"{key}: no such key{where}{hint} Allowed{' in ' + group if group else ''}: {names}"


def _check_text(config: Config) -> None:
    """Refuse bytes of a file name that are no text: config.yaml could not be read back."""
    for key, value in config.leaves():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UserError(
                f"{key}={value}: has bytes that are no UTF-8 text; rename that folder or file, "
                "or give another"
            ) from None


def _check_sizes(value: Any, key: str = "") -> None:
    """Refuse a whole number that no float and no array's shape can hold."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_sizes(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for inner in value:
            _check_sizes(inner, key)
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise UserError(f"{key}: too large a number; a whole number is below 2**63 here")


def _check_parts(config: Config) -> None:
    """What depends on two parts, or on what is registered. Raises UserError."""
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


def _check_best_by(evaluation: Any) -> None:
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


# Keys that runs recorded once and that change no number of theirs.
GONE = ("checkpoint.end", "data.shares", "method.point", "backbone.sha256")


def recorded_config(found: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """The config that a run's config.yaml holds, with a user's key=value in it.

    The file is data: a reference in it (`${oc.env:HOME}`) stays text, and where its run kept its
    files is not where this user keeps theirs: `paths.*` come from the overrides or the environment.
    Nor is it sent to the trackers that it names. Raises UserError.
    """
    left_out = ("paths", "tracking", "tracking_model", "extend")
    plain = {
        group: {key: x for key, x in value.items() if f"{group}.{key}" not in GONE}
        if isinstance(value, Mapping)
        else value
        for group, value in found.items()
        if group not in left_out
    }
    return check(put(plain, parsed(overrides)))


def check_taken(overrides: Sequence[str], allowed: Sequence[str], command: str) -> None:
    """Refuse all but key=value with keys of `allowed` or below them. Raises UserError."""
    for override in overrides:
        key, sign, _ = override.partition("=")
        if Path(override).is_dir():
            raise UserError(f"{override}: a folder more than {command} takes; call it for each run")
        if not sign or not any(key == one or key.startswith(f"{one}.") for one in allowed):
            raise UserError(f"{override}: {command} takes key=value with {', '.join(allowed)}")
