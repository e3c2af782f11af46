"""Folders that a group shares: what is made in one is as open to the group as the folder."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where there is none yet.

    Below a folder that hands its group on (setgid), it is as open to that group as that one.
    Raises OSError.
    """
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.parent.stat().st_mode & stat.S_ISGID:
        share(folder)


def share(path: Path) -> None:
    """Give what was made in a folder that folder's permissions, whatever the umask.

    What belongs to somebody else stays as it is. Raises OSError.
    """
    allowed = path.parent.stat().st_mode & (0o2777 if path.is_dir() else 0o666)
    with suppress(PermissionError):
        path.chmod(allowed)
