"""Several processes, perhaps a group's, and one folder: one makes a file, the others wait for it
and can go on with it."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from robustmd.errors import printable


@contextmanager
def held(path: Path, waiting_for: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file `path` within the block; say once which other process holds it.

    The operating system gives the lock back when its holder ends, however it ends. Raises OSError
    where the lock file cannot be made, or its file system has no locks.
    """
    lock = FileLock(path, mode=permissions(path.parent, 0o666))  # a group may share the folder
    named = path.with_suffix(".holder")  # apart: who tries to get a lock may empty its file
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            who = "another process"
            with suppress(OSError):
                who = printable(named.read_text("utf-8", errors="replace")[:200]) or who
            say(f"{who} is busy with {waiting_for}; waiting for it")
            lock.acquire()
    except NotImplementedError as error:
        raise OSError(f"the file system of {path} gives no locks") from error
    try:
        with suppress(OSError):
            named.write_text(f"process {os.getpid()} on {socket.gethostname()}", "utf-8")
        yield
    finally:
        with suppress(OSError):
            named.unlink()
        lock.release()


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
    with suppress(PermissionError):
        path.chmod(permissions(path.parent, 0o2777 if path.is_dir() else 0o666))


def permissions(folder: Path, most: int) -> int:
    """Those of `most` that the folder itself gives. Raises OSError."""
    return folder.stat().st_mode & most
