"""Faults inside the writes of a run directory: `robustmd.runs.files` gets this in place of `os`."""

import errno
import io
import os
import signal
from typing import Any

OPERATIONS = ("write", "fsync", "replace")
HOWS = ("kill", "kill", "short kill", "short kill", "ENOSPC", "short ENOSPC", "EIO")


class FaultyOS:
    """As `os`, but for the n-th call of one operation, counted from 1.

    Args:
        operation: "write" (to a file opened by fdopen), "fsync" or "replace"; "none" only counts.
        n: which call of it.
        how: "kill" (SIGKILL instead of the call), "short kill" (after half of the bytes), an error,
            or "short ENOSPC" (an error after half of the bytes).
    """

    def __init__(self, operation: str = "none", n: int = 0, how: str = "kill") -> None:
        self.operation, self.n, self.how = operation, n, how
        self.counts = dict.fromkeys(OPERATIONS, 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, descriptor: int) -> None:
        self.meet("fsync")
        os.fsync(descriptor)

    def replace(self, source: str, target: str) -> None:
        self.meet("replace")
        os.replace(source, target)  # noqa: PTH105

    def fdopen(self, descriptor: int, mode: str) -> io.BufferedWriter:
        return _Writer(io.FileIO(descriptor, mode), self)

    def is_due(self, operation: str) -> bool:
        self.counts[operation] += 1
        return operation == self.operation and self.counts[operation] == self.n

    def meet(self, operation: str) -> None:
        if self.is_due(operation):
            self.act()

    def act(self) -> None:
        if "kill" in self.how:
            os.kill(os.getpid(), signal.SIGKILL)
        number = getattr(errno, self.how.rpartition(" ")[2])
        raise OSError(number, os.strerror(number))


class _Writer(io.BufferedWriter):
    def __init__(self, raw: io.FileIO, faulty: FaultyOS) -> None:
        super().__init__(raw)
        self._faulty = faulty

    def write(self, content: Any) -> int:
        if self._faulty.is_due("write"):
            if self._faulty.how.startswith("short"):
                super().write(bytes(content)[: len(content) // 2])
                self.flush()
            self._faulty.act()
        return super().write(content)
