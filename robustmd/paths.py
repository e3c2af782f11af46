"""Where files go when nobody says otherwise: folders of the user, never the working directory."""

from __future__ import annotations

import os
from pathlib import Path


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robustmd"


def data_folder(given: str | None) -> Path:
    """`paths.data`: as given, else `ROBUSTMD_DATA`, else a folder under the user's cache."""
    chosen = given or os.environ.get("ROBUSTMD_DATA") or _user_cache() / "data"
    return Path(chosen).expanduser().absolute()


def cache_folder(given: str | None) -> Path:
    """`paths.cache`: as given, else `ROBUSTMD_CACHE`, else the user's cache: prepared stores."""
    chosen = given or os.environ.get("ROBUSTMD_CACHE") or _user_cache() / "prepared"
    return Path(chosen).expanduser().absolute()
