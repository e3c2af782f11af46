"""Who holds a run: the process that a lock file names, and whether it is still there."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

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


def read(descriptor: int) -> Holder | None:
    """The holder that an opened lock file names; None where it names none."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        found = json.loads(os.read(descriptor, MOST))
        pid, host, started = found["pid"], found["host"], found.get("started")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sound = type(pid) is int and pid > 0 and isinstance(host, str) and host.isprintable()
    return Holder(pid, host, started if type(started) is int else None) if sound else None


def write(descriptor: int, holder: Holder) -> None:
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
