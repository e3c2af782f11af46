"""From the composed config to a typed `Config`; unknown keys and wrong types end here."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast
from unicodedata import normalize

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from robustmd.config.keys import all_keys, keys_of, meant
from robustmd.config.paths import folder, whole
from robustmd.config.ranges import NAMES
from robustmd.config.settings import OPTIONS, SECTIONS, Config, Paths, Top, leaves, leaves_of
from robustmd.errors import UserError


def typed(composed: DictConfig) -> Config:
    """The composed config as a `Config`: every group is merged once more into a fresh schema, so
    that a key that came in by `+new=…` or that the chosen option does not have is refused.

    Raises:
        UserError: an unknown key or option, or a value of the wrong type; one line.
    """
    try:
        plain = cast("dict[str, Any]", literal(OmegaConf.to_container(composed, resolve=True)))
    except OmegaConfBaseException as error:  # a reference that leads nowhere
        key, words = error.full_key, str(error).partition("\n")[0]
        raise UserError(f"{key}: {words}; write the value itself") from None
    _check_sizes(plain)
    parts: dict[str, Any] = {}
    for group, options in OPTIONS.items():
        given = _group(plain, group)
        name = str(given.get("name"))
        if name not in options:
            raise UserError(
                f"{group}={name}: no such option; allowed: {', '.join(options.offered)}; one of "
                "your own comes with imports=[MODULE]"
            )
        parts[group] = _merged(options[name], given, f"{group}.", f" for {group}={name}")
    unseen = parts["data"].unseen
    if not NAMES.holds(unseen):  # a list in the list
        raise UserError(f"data.unseen={unseen}: must be {NAMES.words}")
    parts["data"].unseen = sorted({normalize("NFC", name) for name in unseen})
    for section, schema in SECTIONS.items():
        parts[section] = _merged(schema, _group(plain, section), f"{section}.", "")
    parts.update(dataclasses.asdict(_merged(Top, plain, "", "")))
    config = Config(**parts)
    config.paths = Paths(
        data=folder("data", config.paths.data),
        cache=folder("cache", config.paths.cache),
        outputs=whole("paths.outputs", config.paths.outputs),
    )
    _check_text(config)
    return config


def _group(plain: dict[str, Any], name: str) -> dict[str, Any]:
    given = plain.pop(name, None) or {}
    if not isinstance(given, dict):
        raise UserError(f"{name}={str(given)[:40]}: must be a group of keys")
    return given


def _check_text(config: Config) -> None:
    """Refuse bytes of a file name that are no text: config.yaml could not be read back."""
    for key, (_, value) in leaves(config):
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


# Keys that runs recorded once and that change no number of theirs.
GONE = ("checkpoint.end", "data.shares", "method.point", "backbone.sha256")


def typed_from_file(found: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """The config that a run's config.yaml holds, with a user's key=value in it.

    The file is data: a reference in it (`${oc.env:HOME}`) stays text, and where its run kept its
    files is not where this user keeps theirs: `paths.*` come from the overrides or the environment.
    Nor is it sent to the trackers that it names. Raises UserError.
    """
    left_out = ("paths", "tracking", "tracking_model", "extend")
    own = {
        group: {key: x for key, x in value.items() if f"{group}.{key}" not in GONE}
        if isinstance(value, Mapping)
        else value
        for group, value in found.items()
        if group not in left_out
    }
    try:
        merged = OmegaConf.merge(literal(own), OmegaConf.from_dotlist(list(overrides)))
    except (OmegaConfBaseException, ValueError) as error:
        words = str(error).partition("\n")[0]
        raise UserError(f"config.yaml with {' '.join(overrides) or 'nothing'}: {words}") from None
    return typed(cast("DictConfig", merged))


def check_taken(overrides: Sequence[str], allowed: Sequence[str], command: str) -> None:
    """Refuse all but key=value with keys of `allowed` or below them. Raises UserError."""
    for override in overrides:
        key, sign, _ = override.partition("=")
        if Path(override).is_dir():
            raise UserError(f"{override}: a folder more than {command} takes; call it for each run")
        if not sign or not any(key == one or key.startswith(f"{one}.") for one in allowed):
            raise UserError(f"{override}: {command} takes key=value with {', '.join(allowed)}")


def literal(value: Any) -> Any:
    """The same with every reference (`${…}`) in it escaped, so that OmegaConf takes it for text."""
    if isinstance(value, Mapping):
        return {key: literal(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [literal(inner) for inner in value]
    if isinstance(value, str):
        return re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + r"\${", value)
    return value


Schema = TypeVar("Schema")
_defaults: Any = cache(OmegaConf.structured)  # of a schema; merging copies them


def _merged(schema: type[Schema], given: Mapping[str, Any], prefix: str, where: str) -> Schema:
    try:
        merged = OmegaConf.merge(_defaults(schema), given)
        return OmegaConf.to_object(merged)  # type: ignore[return-value]
    except ConfigKeyError as error:
        key = str(error.full_key or error.key)
        allowed = [name for name, _ in leaves_of(schema) if name != "name"]
        raise UserError(unknown_key(prefix + key, [prefix + a for a in allowed], where)) from None
    except OmegaConfBaseException as error:
        key = error.full_key or next(name for name in given if not _fits(schema, name, given))
        value = OmegaConf.select(OmegaConf.create(dict(given)), key)
        known = (one.words for one in keys_of("", schema) if one.name == key.partition("[")[0])
        what = next(known, "a group of keys")
        raise UserError(f"{prefix}{key}={value}: must be {what}") from None


def _fits(schema: type, name: str, given: Mapping[str, Any]) -> bool:
    """Whether that key alone can have its value; OmegaConf does not name the key of each error."""
    try:
        OmegaConf.merge(_defaults(schema), {name: given[name]})
    except OmegaConfBaseException:
        return False
    return True


def unknown_key(key: str, allowed: Sequence[str], where: str = "") -> str:
    """One line for a key that is not there, with the closest that is."""
    near = meant(key, allowed) or meant(key, (one.name for one in all_keys()))
    hint = f"; did you mean {near}?" if near not in (None, key) else "."
    names = ", ".join(name.rpartition(".")[2] for name in allowed)
    group = key.rpartition(".")[0]
    return f"{key}: no such key{where}{hint} Allowed{' in ' + group if group else ''}: {names}"
