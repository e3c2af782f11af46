"""Paths that are settings, made whole; and where files go when nobody says otherwise: folders of
the user, never the working directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from robustmd.errors import UserError


def whole(key: str, given: str) -> str:
    """A path as it was typed for `key`, absolute, `~` being the user's home. Raises UserError:
    `~NAME` of nobody here, `~` of a user without a home, or `$NAME` at its start."""
    first = given.partition("/")[0]
    if first.startswith("$"):
        raise UserError(
            f"{key}={given}: nothing is filled in for {first}; write the path in full "
            f"(./{given} is a folder of that name)"
        )
    try:
        missing = first.startswith("~") and first != "~" and not Path(first).expanduser().is_dir()
        path = Path(given).expanduser()
    except RuntimeError:
        missing = True
    if missing:
        raise UserError(f"{key}={given}: there is no home folder {first}; write the path in full")
    return str(path.absolute())


def names_weights(given: str) -> bool:
    """Is `backbone.weights` a name, as none, pretrained or IMAGENET1K_V2? Else it is a path."""
    return re.fullmatch(r"none|imagenet|pretrained|[A-Z][A-Z0-9_]*", given, re.ASCII) is not None


def folder(name: str, given: str | None) -> str | None:
    """`paths.data`, or `paths.cache` of the prepared stores: as given, else `ROBUSTMD_DATA` or
    `ROBUSTMD_CACHE`, else a folder under the user's cache; None for a user without one."""
    variable = f"ROBUSTMD_{name.upper()}"
    if given:
        return whole(f"paths.{name}", given)
    if chosen := os.environ.get(variable):
        return whole(variable, chosen)
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no HOME, and a user without a name
        return None
    return str((cache / "robustmd" / {"cache": "prepared"}.get(name, name)).absolute())
