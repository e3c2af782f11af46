"""Processes that work through jobs side by side: what each says, how each ends.

A worker imports torch once and takes one job after another. What it prints comes back line by line.
One that dies takes its own job along and no other; when the parent dies, every worker stops at its
next checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any

Task = Callable[[Any], Any]
_ORPHANED = 45.0  # seconds that a worker without a parent has for its checkpoint


@dataclass(frozen=True)
class End:
    """How a job ended.

    value: what the task returned.
    killed_by: the name of the signal that ended the process, or its exit code; None: it lives.
    """

    value: Any = None
    killed_by: str | None = None


class Worker:
    """One process, and the job that it has; None while it waits.

    Args:
        task: called with each job; picklable by its name.
        environment: variables that the process has beside the parent's before it knows the task,
            and with it torch.
    """

    def __init__(self, task: Task, environment: Mapping[str, str]) -> None:
        context = get_context("spawn")
        self._jobs, theirs = context.Pipe()
        self.output, writing = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(dict(environment), theirs, writing))
        self._process.start()
        theirs.close()
        writing.close()
        self.job: Any = None
        self._text = b""
        self._send(task)

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return self._process.is_alive()

    @property
    def awaited(self) -> list[Any]:
        """What `multiprocessing.connection.wait` waits for."""
        open_ones = [one for one in (self._jobs, self.output) if not one.closed]
        return [*open_ones, self._process.sentinel]

    def give(self, job: Any) -> None:
        """Let it begin a job."""
        self.job = job
        self._send(job)

    def _send(self, message: Any) -> None:
        with suppress(OSError):  # it has died: `end` says so
            self._jobs.send(message)

    def lines(self) -> Iterator[str]:
        """The whole lines that it has printed since the last call."""
        while not self.output.closed and self.output.poll():
            piece = os.read(self.output.fileno(), 1 << 16)
            if not piece:
                self.output.close()
            *whole, self._text = (self._text + piece).replace(b"\r\n", b"\n").split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)

    def end(self) -> End | None:
        """How its job ended; None while it has not."""
        with suppress(EOFError, OSError):  # its end of the pipe closes a moment before it is dead
            if self._jobs.poll():
                value = self._jobs.recv()
                self.job = None
                return End(value)
        if self.is_alive:
            return None
        self._process.join()
        self.job = None
        return End(killed_by=_how(self._process.exitcode))

    def signal(self, number: int) -> None:
        """Pass a signal on, as Ctrl-C to be taken at the next checkpoint."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, number)

    def close(self, patience: float = 5.0) -> None:
        """Let an idle process go, and end one that does not."""
        self._jobs.close()
        self._process.join(patience)
        if self.is_alive:
            self._process.kill()
            self._process.join()
        self.output.close()


def _work(environment: Mapping[str, str], jobs: Connection, output: Connection) -> None:
    """The process's whole life."""
    os.environ.update(environment)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        os.dup2(output.fileno(), descriptor)
        setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    output.close()
    # Between two jobs a Ctrl-C is the parent's alone; within one, training takes it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_stop_without_parent, daemon=True).start()
    received = _received(jobs)
    task: Task = next(received)  # no argument of the process: with it torch is loaded
    for job in received:
        value = task(job)
        sys.stdout.flush()
        sys.stderr.flush()
        jobs.send(value)


def _received(jobs: Connection) -> Iterator[Any]:
    with suppress(EOFError, ConnectionError):
        while True:
            yield jobs.recv()


def _stop_without_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ORPHANED)
    os._exit(1)


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        with suppress(ValueError):
            return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"
