"""One process at a time: a lock file that names its holder and is free when the holder ends.

The system keeps the lock (flock) and drops it when the process ends, however it ends. Where the
file system has no such locks, or they end at the machine's border, the holder that the file names
is looked for instead: on this machine by process number and start, on another by whether the file
is still being renewed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from robustmd.errors import Say, UserError
from robustmd.runs import files

try:
    import fcntl
except ImportError:  # Windows
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

BEAT = 5.0  # seconds between two renewals of the file by its holder
WATCH = 20.0  # seconds to wait for a renewal by a holder on another machine
PATIENCE = 2.0  # seconds to wait for one that only looked who holds the lock
MOST = 4096  # bytes of a lock file that are looked at


@dataclass(frozen=True)
class Holder:
    """A process; `started` in ticks since its machine's start, None where that is not told."""

    pid: int
    host: str
    started: int | None = None

    @classmethod
    def here(cls) -> Holder:
        """This process."""
        return cls(os.getpid(), socket.gethostname(), _start_of(os.getpid()))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it runs on this machine; another process with its number is not it."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass  # somebody else's, but there
        except (OSError, OverflowError):
            return False
        return self.started is None or _start_of(self.pid) in (None, self.started)


class Busy(UserError):
    """Another process has the lock."""


@contextlib.contextmanager
def held(path: Path, say: Say = lambda _: None, *, waiting_for: str = "") -> Iterator[None]:
    """Hold the lock file `path`, as open to others as its folder, for the block; `say` is told of a
    lock that is waited for or taken over.

    waiting_for: what another holder is busy with, in words: it is waited for. Without it one that
    is at work is an error, and one that ended without a word is replaced.

    Raises:
        Busy: another process has it and is not waited for; says which.
        OSError: `path` is no plain file, the system refuses, or has no locks to wait for.
    """
    descriptor, locked = _opened_and_locked(path, say, waiting_for)
    try:
        before = _read(descriptor)
        if not locked:
            say(f"{path.parent}: that file system gives no locks; the name in {path.name} must do")
        if before is not None and not waiting_for:
            _take_over(before, path, locked, say)
        _write(descriptor, Holder.here())
        try:
            with _renewed(descriptor):
                yield
        finally:
            with contextlib.suppress(OSError):  # the file system may have gone
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path) -> str | None:
    """Who holds the lock file `path` now, in words; None: nobody that can be seen from here. Raises
    OSError: it is no plain file."""
    try:
        descriptor = files.opened(path)
    except (FileNotFoundError, PermissionError):
        return None
    try:
        named = _read(descriptor)
        locked = _flock(descriptor, shared=True)
        if locked is False:
            return str(named or "another process")
        is_seen = locked is None and named is not None and named.is_here and named.is_alive
        return str(named) if is_seen else None
    finally:
        os.close(descriptor)


def _opened_and_locked(path: Path, say: Say, waiting_for: str) -> tuple[int, bool]:
    """A descriptor of the file, and whether the system's lock is on it (else it has none)."""
    patience, told = time.monotonic() + PATIENCE, False
    while True:
        descriptor = files.opened(path, os.O_RDWR | os.O_CREAT)
        with contextlib.suppress(OSError):  # somebody else's file
            path.chmod(path.parent.stat().st_mode & 0o666)
        locked = _flock(descriptor)
        if locked is not False and _is_still(path, descriptor) and (locked or not waiting_for):
            return descriptor, bool(locked)
        named = _read(descriptor)
        os.close(descriptor)
        if locked is None and waiting_for:
            raise OSError(errno.ENOLCK, "that file system gives no locks", str(path))
        alive = named is not None and (named.is_alive or not named.is_here)
        if locked is False and not told and (alive or time.monotonic() > patience):
            if not waiting_for:
                raise _busy(path, named)
            say(f"{named or 'another process'} is busy with {waiting_for}; waiting for it")
            told = True
        time.sleep(0.05)  # it may be held for a moment by one that looks who holds it


def _take_over(before: Holder, path: Path, locked: bool, say: Say) -> None:
    """The file names a holder, though the system gave its lock: is that holder still at work?"""
    stays_unseen = before.is_here and (locked or not before.is_alive)
    if not stays_unseen and (before.is_here or _is_renewed(path, before, say)):
        raise _busy(path, before)
    say(f"{before} ended without a word; this process takes the run over")


def _is_renewed(path: Path, before: Holder, say: Say) -> bool:
    """Watch the file, whose holder on another machine would renew it. No clocks are compared."""
    say(f"{before} had this run; watching for {WATCH:.0f} s whether it still has")
    first, until = _stamp(path), time.monotonic() + WATCH
    while time.monotonic() < until:
        time.sleep(min(1.0, WATCH / 10))
        if _stamp(path) != first:
            return True
    return False


def _stamp(path: Path) -> int:
    descriptor = files.opened(path)  # a network file system looks anew when one opens
    try:
        return os.fstat(descriptor).st_mtime_ns
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _renewed(descriptor: int) -> Iterator[None]:
    """Renew the file's time from a thread of its own for the block."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT):
            with contextlib.suppress(OSError, TypeError):  # TypeError: not on this system
                os.utime(descriptor)

    thread = threading.Thread(target=beat, name="lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _busy(path: Path, named: Holder | None) -> Busy:
    hint = "wait for it or end it first"
    if named is not None and not named.is_here:
        hint += f"; if that machine is gone, remove {path}"
    return Busy(f"{path.parent}: {named or 'another process'} is at work on this run; {hint}")


def _flock(descriptor: int, *, shared: bool = False) -> bool | None:
    """True: have it; False: another process has it; None: this file system has no locks."""
    if not HAS_FLOCK:
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the opened file is the one at `path`: it may have been removed in between."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read(descriptor: int) -> Holder | None:
    """The holder that an opened lock file names; None where it names none."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        found = json.loads(os.read(descriptor, MOST))
        pid, host, started = found["pid"], found["host"], found.get("started")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sound = type(pid) is int and pid > 0 and isinstance(host, str) and host.isprintable()
    return Holder(pid, host, started if type(started) is int else None) if sound else None


def _write(descriptor: int, holder: Holder) -> None:
    """Name the holder in an opened lock file."""
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, (json.dumps(asdict(holder)) + "\n").encode())


def _start_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
