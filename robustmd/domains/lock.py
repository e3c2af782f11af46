"""Two processes that make the same file: one makes it, the other waits and then uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from robustmd.domains.shared import permissions


@contextmanager
def held(path: Path, waiting_for: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file `path` within the block; say once that another process holds it.

    The operating system gives the lock back when its holder ends, however it ends. Raises OSError
    where the lock file cannot be made.
    """
    lock = FileLock(path, mode=permissions(path.parent, 0o666))  # a group may share the folder
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"another process is busy with {waiting_for}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
