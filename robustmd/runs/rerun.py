"""The command line that trains a recorded run, or goes on with it.

A record may be somebody else's and its command goes to a shell: only settings of robustmd's own
keys and groups are written.
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
from robustmd.config.values import hydra_value
from robustmd.errors import printable
from robustmd.runs.untrusted import Unreadable

DEPTH = 4  # <outputs>/<data>/<method>/<8 hex>/seed=<n>
CHANGING = ("training", "evaluation")  # what else can change a number
PATHS = ("data.root", "data.manifest", "method.run", "paths.data", "paths.cache", "paths.outputs")
WEIGHTS = "backbone.weights"  # a path, or a name
# No record brings code in, nor does it say where this user's runs are sent.
NOT_REPEATED = ("force", "resume", "paths.outputs", "imports", "tracking", "tracking_model")
SHOWN = 80  # characters of a setting that is refused
_SETTING = re.compile(r"\+{0,2}([\w./]+)=(.*)", re.ASCII)  # signs of older editions
_OPTION = re.compile(r"\w+(/\w+)*", re.ASCII)  # no "..", which would lead Hydra out of conf/


def overrides(
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    *,
    outputs: Path | None = None,
    seeds: Sequence[int] = (),
) -> list[str]:
    """`key=value` arguments of `robustmd train` for the run of this config, from any folder.

    What the user typed, where environment.json has it; else every value of config.yaml. outputs:
    the tree to name. seeds: others than the run's own. Raises `Unreadable`: the record names no
    settings, or more than settings of robustmd.
    """
    left_out = (*NOT_REPEATED, "seed") if seeds else NOT_REPEATED
    kept = []
    try:
        typed = environment.get("overrides")
        for setting in _all_settings(config) if typed is None else typed:
            key, value = _parts(setting)
            if key not in left_out:
                kept.append(f"{key}={_from_anywhere(key, value, environment.get('folder'))}")
    except (KeyError, TypeError, AttributeError):
        raise Unreadable("its record names no settings of robustmd train") from None
    if seeds:
        kept.append(f"seed={','.join(map(str, seeds))}")
    if outputs is not None:
        kept.append(f"paths.outputs={hydra_value(str(outputs))}")
    return kept


def _parts(setting: str) -> tuple[str, str]:
    """The key and value of a setting of robustmd."""
    match = _SETTING.fullmatch(setting)
    key, value = match.groups() if match else ("", "")
    has_reference = "${" in value.replace("\\", "")  # Hydra would look up what it names
    is_option = key in GROUPS and (value == "null" or _OPTION.fullmatch(value))
    is_known = is_option or key in _known_keys()
    if not is_known or has_reference or setting != printable(setting):
        is_of_option = not is_known and key.partition(".")[0] in OPTIONS
        hint = "; a key of your own code is known with imports=[MODULE]" if is_of_option else ""
        shown = printable(setting[:SHOWN]) + "…" * (len(setting) > SHOWN)
        raise Unreadable(f"{shown}: is no plain setting, so no command is made of it{hint}")
    return key, value


@cache
def _known_keys() -> frozenset[str]:
    return frozenset(key.name for key in all_keys())


def _from_anywhere(key: str, value: str, folder: object) -> str:
    """The value; of a relative path the absolute one, `folder` being where it was typed."""
    is_quoted = value.startswith(("'", '"'))
    text = re.sub(r"\\(['\"])", r"\1", value[1:-1]) if is_quoted else value
    is_path = key in PATHS or (key == WEIGHTS and not names_weights(text))
    if not is_path or text == "null" or text.startswith(("/", "~")):
        return value
    if not isinstance(folder, str) or not folder.startswith("/") or folder != printable(folder):
        raise Unreadable(f"{key}: is relative, and environment.json does not say to what folder")
    return hydra_value(str(Path(folder) / text))


def _all_settings(config: Mapping[str, Any]) -> Iterator[str]:
    for group in OPTIONS:
        yield f"{group}={hydra_value(config[group]['name'])}"
    for part in (*OPTIONS, *CHANGING):
        for key, value in flattened(config.get(part), part):
            if key not in (part, f"{part}.name"):
                yield f"{key}={hydra_value(value)}"
    paths = config.get("paths")
    if isinstance(paths, Mapping) and paths.get("data") is not None:
        yield f"paths.data={hydra_value(paths['data'])}"  # where the bytes are that it read
    yield f"seed={config.get('seed', 0)}"


def command(arguments: list[str]) -> str:
    """`robustmd train …` as it can be pasted into a shell."""
    folder = config_folder()  # of the user who reads it; no record names one
    own = [] if folder is None else ["--config-dir", str(folder)]
    return shlex.join(["robustmd", "train", *own, *arguments])


def tree_of(run: Path) -> Path:
    """The outputs folder that a run directory belongs to."""
    return run.absolute().parents[DEPTH - 1]
