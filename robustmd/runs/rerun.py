"""The command line that makes a run, or goes on with one: from what its directory recorded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DEPTH = 4  # <outputs>/<data>/<method>/<8 hex>/seed=<n>
GROUPS = ("data", "backbone", "method")  # one option each, by name
SECTIONS = ("training", "evaluation")  # what else can change a number
PATH_KEYS = ("data.root", "data.manifest", "data.other")  # relative to where the command was typed
NOT_REPEATED = ("force", "resume", "paths.outputs")
_PLAIN = re.compile(r"[A-Za-z_/][\w./:+@-]*", re.ASCII)  # what Hydra takes for text without quotes
_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "nan", "inf")


def overrides(
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    *,
    outputs: Path | None = None,
    seed: int | None = None,
) -> list[str]:
    """`key=value` arguments of `robustmd train` that lead to the run of this config.

    What the user typed, where environment.json has it; else every value of config.yaml.

    Args:
        config: the run's config.yaml.
        environment: its environment.json; may be empty.
        outputs: the outputs tree to name in `paths.outputs`; None: name none.
        seed: another seed than the run's own, for a run that does not exist yet.
    """
    typed = environment.get("overrides")
    if isinstance(typed, list) and all(isinstance(item, str) and "=" in item for item in typed):
        found = [_from_folder(o, environment) for o in typed if _key(o) not in NOT_REPEATED]
    else:
        found = list(_from_config(config))
    if seed is not None:
        found = [o for o in found if _key(o) != "seed"] + [f"seed={seed}"]
    if outputs is not None:
        found.append(f"paths.outputs={hydra_value(str(outputs))}")
    return found


def command(arguments: list[str]) -> str:
    """`robustmd train …` as it can be pasted into a shell."""
    return shlex.join(["robustmd", "train", *arguments])


def tree_of(run: Path) -> Path:
    """The outputs folder that a run directory belongs to."""
    return run.absolute().parents[DEPTH - 1]


def hydra_value(value: Any) -> str:
    """A value in the grammar of Hydra's overrides: quoted where it would not be taken as it is."""
    if isinstance(value, list | tuple):
        return f"[{','.join(hydra_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        inner = (f"{hydra_value(str(key))}:{hydra_value(item)}" for key, item in value.items())
        return f"{{{','.join(inner)}}}"
    if not isinstance(value, str):
        return "null" if value is None else repr(value).lower()
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # Backslashes count only before a quote and before the ${ of a reference.
    quoted = re.sub(r"(\\*)(\$\{|'|$)", lambda m: m[1] * 2 + _escaped(m[2]), value)
    return f"'{quoted}'"


def _escaped(mark: str) -> str:
    return f"\\{mark}" if mark else ""


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def _from_folder(override: str, environment: Mapping[str, Any]) -> str:
    """A relative path among the overrides, as seen from anywhere."""
    folder = environment.get("folder")
    value = override.partition("=")[2]
    if _key(override) not in PATH_KEYS or not isinstance(folder, str) or not _PLAIN.match(value):
        return override
    return f"{_key(override)}={hydra_value(str(Path(folder) / value))}"


def _from_config(config: Mapping[str, Any]) -> Iterator[str]:
    for group in GROUPS:
        yield f"{group}={hydra_value(config[group]['name'])}"
    for part in (*GROUPS, *SECTIONS):
        values = config.get(part)
        for key, value in _leaves(values if isinstance(values, Mapping) else {}, part):
            if key != f"{part}.name":
                yield f"++{key}={hydra_value(value)}"
    paths = config.get("paths")
    for key in ("data", "cache"):  # where the bytes are that it read
        if isinstance(paths, Mapping) and paths.get(key) is not None:
            yield f"paths.{key}={hydra_value(paths[key])}"
    yield f"seed={config.get('seed', 0)}"


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        key = f"{prefix}.{name}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, key)
        else:
            yield key, value
