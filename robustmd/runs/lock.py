"""One process at a time works in a run directory. The system drops the lock when its holder ends,
however it ends; the file beside it names the holder."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from robustmd.errors import UserError, printable
from robustmd.runs import files

PATIENCE = 1.0  # seconds: `holder` takes a free lock for a moment


class Busy(UserError):
    """Another process has the lock."""


@contextlib.contextmanager
def held(run: Path) -> Iterator[None]:
    """Hold the lock of a run directory for the block. Raises `Busy`, which names the holder; and
    OSError, also where the lock is no plain file."""
    path = run / files.LOCK
    # Not made here: on a file system without locks the file that is there is the lock.
    with contextlib.suppress(FileNotFoundError):
        os.close(files.opened(path, os.O_RDWR))
    try:
        lock = FileLock(path, mode=0o666).acquire(timeout=PATIENCE)
    except Timeout:
        raise Busy(
            f"{run}: {_name(run)} is at work on this run; wait for it or end it first; if that "
            f"machine is gone, remove {path}"
        ) from None
    with lock:
        text = f"process {os.getpid()} on {socket.gethostname()}"
        files.write_atomically(run / files.HOLDER, lambda stream: stream.write(text.encode()))
        try:
            yield
        finally:
            (run / files.HOLDER).unlink(missing_ok=True)


def holder(run: Path) -> str | None:
    """Who holds the lock now, in words; None: nobody. Raises OSError: it is no plain file."""
    path = run / files.LOCK
    try:
        os.close(files.opened(path))
        with FileLock(path, mode=0o666).acquire(blocking=False):
            return None
    except (FileNotFoundError, PermissionError):
        return None
    except Timeout:
        return _name(run)


def _name(run: Path) -> str:
    with contextlib.suppress(OSError), files.reading(run / files.HOLDER, most=1000) as stream:
        return printable(stream.read().decode("utf-8", errors="replace"))
    return "another process"
