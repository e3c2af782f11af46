"""Removing runs that did not finish, and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from robustmd.errors import UserError
from robustmd.runs import files, lock
from robustmd.runs.reader import status_of
from robustmd.runs.untrusted import Unreadable


def remove(path: Path, root: Path) -> None:
    """Remove an unfinished run's directory, and the folders above it that it leaves empty.

    Args:
        path: a run directory that is no symbolic link and has none on its way from `root`.
        root: the outputs folder, resolved; it stays.

    Raises:
        UserError: it has finished, is being trained, holds what no run writes, or lies elsewhere.
        OSError: the system refuses.
    """
    if path.resolve() != path or not path.is_relative_to(root) or path == root:
        raise UserError(f"{path}: is reached by a symbolic link; left as it is")
    foreign = [child.name for child in path.iterdir() if not _is_ours(child)]
    if not path.name.startswith("seed=") or foreign:
        what = f"holds {foreign[0]}, which" if foreign else "has a name that"
        raise UserError(f"{path}: {what} no run of ours has; left as it is")
    with lock.held(path / files.LOCK):
        if _may_have_finished(path):
            raise UserError(f"{path}: has finished, or may have; left as it is")
        shutil.rmtree(path)  # follows no symbolic link
    for folder in _up_to(path.parent, root):
        if any(folder.iterdir()):
            return
        folder.rmdir()


def _is_ours(child: Path) -> bool:
    return child.name in files.ALL or re.fullmatch(files.LEFTOVER, child.name) is not None


def _may_have_finished(path: Path) -> bool:
    try:
        return status_of(path) == "finished"
    except Unreadable:
        return True


def _up_to(folder: Path, root: Path) -> Iterable[Path]:
    while folder != root and folder.is_relative_to(root):
        yield folder
        folder = folder.parent
