"""Ending a run between two iterations when the user or the machine asks for it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

# Ctrl-C, a scheduler's end, a closed terminal, two preemptions, a used-up limit of CPU time
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")
PREEMPTIONS = ("SIGUSR1", "SIGUSR2")
ONE_PRESS = 1.0  # seconds: a launcher may pass a Ctrl-C on that has come here already


class Interrupted(BaseException):
    """The run was asked to stop; `code` is the process's exit code (128 + signal).

    No `Exception`, as KeyboardInterrupt is none: nothing on the way takes it for a fault.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"stopped by {name}")
        self.code = _exit_code(name)


class StopRequest:
    """Turns signals into a question that the loop asks: `check()` raises where one has come.

    A second Ctrl-C does not wait for the loop. A SIGHUP that is ignored (nohup) stays so.
    """

    def __init__(self) -> None:
        self._received: str | None = None
        self._received_at = 0.0
        self._is_at_once = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopRequest:
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is None or (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
                continue
            try:
                self._before[number] = signal.signal(number, self._receive)
            except ValueError:  # not the main thread: somebody else's program has the signals
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._received is None:
            self._received, self._received_at = signal.Signals(number).name, time.monotonic()
            if self._is_at_once:
                self.check()
        elif number == signal.SIGINT and time.monotonic() - self._received_at > ONE_PRESS:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Within it the first signal raises where it comes: nothing there has to be kept."""
        self._is_at_once = True
        try:
            self.check()
            yield
        finally:
            self._is_at_once = False

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self._received is not None:
            raise Interrupted(self._received)

    @property
    def code(self) -> int:
        """The exit code for a signal that has come; 0 where none has."""
        return 0 if self._received is None else _exit_code(self._received)


def _exit_code(name: str) -> int:
    """128 + signal; a preemption is an end like any other to whoever waits."""
    return 128 + int(signal.SIGTERM if name in PREEMPTIONS else getattr(signal, name))
