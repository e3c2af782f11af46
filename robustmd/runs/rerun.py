"""The command line that makes a run, or goes on with one: from what its directory recorded.

A record may be a stranger's and its command goes to a shell, so only options of the groups that
robustmd has and plain values of its own keys are ever written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from robustmd.config.identity import flattened
from robustmd.config.keys import all_keys
from robustmd.config.paths import names_weights
from robustmd.config.plugins import config_folder
from robustmd.config.settings import GROUPS, OPTIONS
from robustmd.errors import printable
from robustmd.runs.untrusted import Unreadable

DEPTH = 4  # <outputs>/<data>/<method>/<8 hex>/seed=<n>
CHANGING = ("training", "evaluation")  # what else can change a number
PATHS = ("data.root", "data.manifest", "method.run", "paths.data", "paths.cache", "paths.outputs")
WEIGHTS = "backbone.weights"  # a path, or a name
# no record brings code in, nor does it say where this user's runs are sent
NOT_REPEATED = ("force", "resume", "paths.outputs", "imports", "tracking", "tracking_model")
LONGEST = 10_000  # characters of all settings; Hydra reads them within a second or two
SHOWN = 80  # characters of an override that is refused
_PLAIN = re.compile(r"[A-Za-z_/][\w./:+@-]*", re.ASCII)  # what Hydra takes for text without quotes
_OPTION = re.compile(r"\w+(/\w+)*", re.ASCII)  # no "..", which would lead Hydra out of conf/
_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "nan", "inf")


def overrides(
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    *,
    outputs: Path | None = None,
    seeds: Sequence[int] = (),
) -> list[str]:
    """`key=value` arguments of `robustmd train` that lead to the run of this config, from anywhere.

    What the user typed, where environment.json has it; else every value of config.yaml. `outputs`:
    the tree to name; `seeds`: others than the run's own. Raises `Unreadable`: the record is none,
    or holds what is no group's option and no key's plain value.
    """
    typed = environment.get("overrides")
    try:
        if typed is not None and any(text.startswith("row=") for text in typed):
            typed = None  # a group of the first edition: config.yaml has all that it stood for
        found = list(_from_config(config)) if typed is None else list(typed)
        if sum(map(len, found)) > LONGEST:
            raise Unreadable(f"its settings have more than {LONGEST} characters")
        settled = [_settled(override, environment.get("folder")) for override in found]
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise Unreadable("its record names no settings of robustmd train") from None
    left_out = (*NOT_REPEATED, "seed") if seeds else NOT_REPEATED
    kept = [text for key, text in settled if key not in left_out]
    if seeds:
        kept.append(f"seed={','.join(map(str, seeds))}")
    if outputs is not None:
        kept.append(_settled(f"paths.outputs={hydra_value(str(outputs))}", None)[1])
    return kept


def _settled(text: str, folder: object) -> tuple[str, str]:
    """The key of an override, and the override with its path absolute; `folder` is where it was
    typed. Raises `Unreadable` for what is more than a plain setting."""
    key, value, is_plain = _parsed(text)
    if not is_plain or text != printable(text):
        shown = printable(text[:SHOWN]) + "…" * (len(text) > SHOWN)
        own = key.partition(".")[0] in OPTIONS and key not in _known_keys()
        hint = "; a key of your own code is known with imports=[MODULE]" if own else ""
        raise Unreadable(f"{shown}: is no plain setting, so no command is made of it{hint}")
    is_path = key in PATHS or (key == WEIGHTS and value and not names_weights(str(value)))
    if not is_path or value is None or str(value).startswith(("/", "~")):
        return key, text
    if not isinstance(folder, str) or not Path(folder).is_absolute():
        raise Unreadable(f"{key}: is relative, and environment.json does not say to what folder")
    absolute = f"{text.partition('=')[0]}={hydra_value(str(Path(folder) / str(value)))}"
    return _settled(absolute, None)


@cache
def _parsed(text: str) -> tuple[str, Any, bool]:
    """Key and value, and whether they are an option of a group or a plain value of a known key."""
    from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: PLC0415
    from hydra.core.override_parser.types import OverrideType  # noqa: PLC0415
    from hydra.errors import HydraException  # noqa: PLC0415

    try:
        found = OverridesParser.create().parse_override(text)
    except HydraException:
        return "", None, False
    key, value = found.key_or_group, found.value()
    if found.package is not None or found.is_sweep_override() or found.type == OverrideType.DEL:
        return key, value, False
    if key in GROUPS:
        option = value is None or (isinstance(value, str) and _OPTION.fullmatch(value))
        return key, value, bool(option) and found.type == OverrideType.CHANGE
    return key, value, key in _known_keys() and _is_plain(value)


@cache
def _known_keys() -> frozenset[str]:
    """Every key that some option has."""
    return frozenset(key.name for key in all_keys())


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return "${" not in value  # Hydra would look up what it names
    return value is None or isinstance(value, int | float)


def command(arguments: list[str]) -> str:
    """`robustmd train …` as it can be pasted into a shell."""
    folder = config_folder()  # of the user who reads it; no record names one
    own = [] if folder is None else ["--config-dir", str(folder)]
    return shlex.join(["robustmd", "train", *own, *arguments])


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
    quoted = re.sub(r"(\\*)(\$\{|'|$)", lambda m: m[1] * 2 + "\\" * bool(m[2]) + m[2], value)
    return f"'{quoted}'"


def _from_config(config: Mapping[str, Any]) -> Iterator[str]:
    for group in OPTIONS:
        yield f"{group}={hydra_value(config[group]['name'])}"
    for part in (*OPTIONS, *CHANGING):
        for key, value in flattened(config.get(part), part):
            if key not in (part, f"{part}.name"):
                yield f"++{key}={hydra_value(value)}"
    paths = config.get("paths")
    if isinstance(paths, Mapping) and paths.get("data") is not None:
        yield f"paths.data={hydra_value(paths['data'])}"  # where the bytes are that it read
    yield f"seed={config.get('seed', 0)}"
