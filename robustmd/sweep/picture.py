"""What a person sees of runs side by side: a table on a terminal, marked lines elsewhere."""

from __future__ import annotations

import math
import os
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Table

from robustmd.config.composing import as_typed
from robustmd.console import make_console

_BETWEEN = 0.25  # seconds between two drawings of the table
_MEASURED = re.compile(r" *iteration (\d+)/(\d+): worst training loss ([^ ,]+),? *(.*)")
SIZE = "ROBUSTMD_SWEEP_SIZE"  # how many runs a sweep has, where its sweeper knows


def run_title(number: int, overrides: Sequence[str]) -> str:
    """What the run is called in every line of a sweep; `number` counts from 0."""
    size = os.environ.get(SIZE)
    return f"[run {number + 1}{' of ' + size if size else ''}] {' '.join(as_typed(overrides))}"


class Picture:
    """Plain lines, each with its run's number before it.

    Args:
        console: where they go.
        overrides: of every run, in order.
        places: how many runs go side by side.
        first: the number of the first of them in the sweep, which may come in several batches.
    """

    def __init__(
        self, console: Console, overrides: Sequence[Sequence[str]], places: int, first: int = 0
    ) -> None:
        self._console, self._overrides, self._places = console, overrides, places
        self._first = first
        self._total = int(os.environ.get(SIZE, first + len(overrides)))

    def __enter__(self) -> Picture:
        if not self._first:
            self._print(f"{self._total} runs, {self._places} side by side")
        return self

    def __exit__(self, *_: object) -> None:
        """The last has ended, or an error ends them all."""

    def title(self, number: int) -> str:
        """What a run calls itself; here and below `number` counts in `overrides`."""
        return run_title(self._first + number, self._overrides[number])

    def started(self, number: int) -> None:
        """A run begins."""

    def said(self, number: int, line: str) -> None:
        """A run has printed a line."""
        self._print(line if line == self.title(number) else self._marked(number, line))

    def ended(self, number: int, killed_by: str | None) -> None:
        """A run has ended, by itself where `killed_by` is None."""

    def look(self) -> None:
        """Show what is new; called several times a second."""

    def _marked(self, number: int, line: str) -> str:
        return f"{self._first + number + 1:>{len(str(self._total))}}| {line}"

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


@dataclass
class _Running:
    """A run under way: what it has said, and how far it has come since it was first measured."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=2))
    first: tuple[float, int] | None = None  # when [s], after which iteration
    last: tuple[float, int] = (0.0, 0)
    end: int = 0  # T
    worst: str = ""
    further: str = "starts"

    def say(self, line: str) -> None:
        self.lines.append(line)
        self.further = line.strip()
        if measured := _MEASURED.match(line):
            self.last, self.end = (time.monotonic(), int(measured[1])), int(measured[2])
            self.first = self.first or self.last
            self.worst, self.further = measured[3], measured[4]

    def row(self) -> tuple[str, ...]:
        """iteration, worst loss, time left, and what else it last said."""
        iteration = f"{self.last[1]}/{self.end}" if self.first else ""
        return iteration, self.worst, self._left(), self.further

    def _left(self) -> str:
        """By its own pace; "" until it was measured twice."""
        if self.first is None or self.last[1] == self.first[1]:
            return ""
        (began, at), (then, now_at) = self.first, self.last
        left = (then - began) / (now_at - at) * (self.end - now_at) - (time.monotonic() - then)
        return str(timedelta(seconds=round(max(0.0, left))))


class LivePicture(Picture):
    """A table of the runs under way, how far each is and its last line; what ended stands above
    it."""

    def __init__(
        self, console: Console, overrides: Sequence[Sequence[str]], places: int, first: int = 0
    ) -> None:
        super().__init__(console, overrides, places, first)
        self._running: dict[int, _Running] = {}
        self._shared = set.intersection(*map(set, overrides))  # in all of them
        self._ended = self._killed = 0
        self._begun = time.monotonic()
        self._shown_at = -math.inf
        # Its own thread draws while this one prints, and takes a line of what stands above away.
        self._live = Live(
            console=console, get_renderable=self._table, transient=True, auto_refresh=False
        )

    def __enter__(self) -> Picture:
        super().__enter__()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def started(self, number: int) -> None:
        self._running[number] = _Running()

    def title(self, number: int) -> str:
        return run_title(self._first + number, self._own(number))

    def said(self, number: int, line: str) -> None:
        if "warning:" in line or "failed:" in line:
            self._print(self._marked(number, line))
        elif line != super().title(number):
            self._running[number].say(line)

    def ended(self, number: int, killed_by: str | None) -> None:
        said = self._running.pop(number).lines
        self._ended += 1
        self._killed += killed_by is not None
        for line in (self.title(number), *said):  # its verdict and its folder
            self._print(line)

    def look(self) -> None:
        if time.monotonic() - self._shown_at >= _BETWEEN:
            self._live.refresh()
            self._shown_at = time.monotonic()

    def _table(self) -> Table:
        width = self._console.width - 2  # a terminal writes ^C there, and no line breaks
        table = Table(box=None, pad_edge=False, caption_justify="left", width=width)
        table.add_column("run", justify="right", no_wrap=True)
        most = width * 2 // 5
        table.add_column("settings", no_wrap=True, overflow="ellipsis", max_width=most)
        for name in ("iteration", "worst loss", "left"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
        for number, running in sorted(self._running.items()):
            settings = " ".join(as_typed(self._own(number)))
            table.add_row(str(self._first + number + 1), settings, *running.row())
        table.caption = self._counts()
        return table

    def _own(self, number: int) -> Sequence[str]:
        """What tells the run from others."""
        own = [one for one in self._overrides[number] if one not in self._shared]
        return own or self._overrides[number]

    def _counts(self) -> str:
        ended, running = self._first + self._ended, len(self._running)
        waiting = self._total - ended - running
        words = f"{ended} of {self._total} ended, {running} running, {waiting} waiting"
        if self._killed:
            words += f", {self._killed} killed"
        if self._ended and ended < self._total:
            left = (time.monotonic() - self._begun) / self._ended * (self._total - ended)
            words += f"; about until {time.strftime('%H:%M', time.localtime(time.time() + left))}"
        return words


def make_picture(overrides: Sequence[Sequence[str]], places: int, first: int) -> Picture:
    """The table on a terminal that can show one, else lines."""
    console = make_console()
    kind = LivePicture if console.is_interactive else Picture
    return kind(console, overrides, places, first)
