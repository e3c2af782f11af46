"""One writer a run: a lock that names its holder and goes when the holder does."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from robustmd.errors import UserError


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock file `path` for the block.

    The system drops the lock when the process ends, however it ends, so none is ever stale.

    Raises:
        UserError: another process has it; says which.
    """
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows: no advisory locks; the run goes unguarded
        yield
        return
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            raise UserError(
                f"{path.parent}: {holder} is at work on this run; wait for it or end it first"
            ) from None
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        try:
            yield
        finally:
            stream.truncate(0)
