"""Which file of conf/, or of the user's config directory, sets a key in a given command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from robustmd.config.composing import initialized
from robustmd.config.plugins import conf_folders

_NOTHING = object()


def origin(key: str, overrides: Sequence[str]) -> str:
    """In words: where the value of a key comes from.

    Args:
        key: its whole name.
        overrides: what was typed; its config composes.
    """
    if any(text.lstrip("+").partition("=")[0] == key for text in overrides):
        return "as typed"
    with initialized(overrides) as given:
        loader = GlobalHydra.instance().config_loader()
        files = loader.compute_defaults_list("config", given, RunMode.RUN).defaults
    for file in reversed(files):  # what comes later wins
        content, shown = _content(f"{file.config_path}.yaml")
        swept = _at(content, "hydra.sweeper.params")
        if isinstance(swept, Mapping) and key in swept:
            return f"{shown} sweeps it: {swept[key]}"
        inner = key.removeprefix(f"{file.package}.") if file.package else key
        if (inner != key or not file.package) and _at(content, inner) is not _NOTHING:
            return f"from {shown}"
    return "the default"


def _content(path: str) -> tuple[Any, str]:
    """What the first file of that name says, and how it is called; nothing, where it is none."""
    conf, *own = conf_folders()
    for folder in (conf, *own):
        if (folder / path).is_file():
            shown = f"conf/{path}" if folder == conf else str(folder / path)
            return yaml.safe_load((folder / path).read_text("utf-8")), shown
    return None, ""


def _at(content: Any, key: str) -> Any:
    for name in key.split("."):
        if not isinstance(content, Mapping) or name not in content:
            return _NOTHING
        content = content[name]
    return content
