"""Two processes that make the same file: one makes it, the other waits and then uses it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from robustmd.domains.shared import permissions

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # what a file system without them says


@contextmanager
def held(path: Path, waiting_for: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file `path` within the block; say once that another process holds it.

    The operating system gives the lock back when its holder ends, however it ends. Raises OSError
    where the lock file cannot be made, or its file system has no locks.
    """
    lock = FileLock(path, mode=permissions(path.parent, 0o666))  # a group may share the folder
    try:
        _acquire(lock, waiting_for, say)
    except (OSError, NotImplementedError) as error:
        code = getattr(error, "errno", None)
        if code in NO_LOCKS or isinstance(error, NotImplementedError):
            raise OSError(code, "that file system gives no locks", str(path)) from error
        raise
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: BaseFileLock, waiting_for: str, say: Callable[[str], None]) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"another process is busy with {waiting_for}; waiting for it")
        lock.acquire()
