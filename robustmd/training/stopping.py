"""Ending a run between two iterations when the user or the machine asks for it."""

from __future__ import annotations

import signal
from types import FrameType

SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")  # Ctrl-C, a scheduler's end, a scheduler's preemption


class Interrupted(Exception):
    """The run was asked to stop; `code` is the process's exit code (128 + signal)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"stopped by {name}")
        self.code = _exit_code(name)


class StopRequest:
    """Turns signals into a question that the loop asks: `check()` raises where one has come.

    A second Ctrl-C does not wait for the loop.
    """

    def __init__(self) -> None:
        self._received: str | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopRequest:
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                try:
                    self._before[number] = signal.signal(number, self._receive)
                except ValueError:  # not the main thread: somebody else's program has the signals
                    break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = signal.Signals(number).name

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self._received is not None:
            raise Interrupted(self._received)

    @property
    def code(self) -> int:
        """The exit code for a signal that has come; 0 where none has."""
        return 0 if self._received is None else _exit_code(self._received)


def _exit_code(name: str) -> int:
    """128 + signal; a preemption (SIGUSR1) is an end like any other to whoever waits."""
    return 128 + int(signal.SIGTERM if name == "SIGUSR1" else getattr(signal, name))
