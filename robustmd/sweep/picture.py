"""What a person sees of runs side by side: a table on a terminal, marked lines elsewhere."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Table

from robustmd.console import make_console
from robustmd.sweep.jobs import Job

_BETWEEN = 0.25  # seconds between two drawings of the table
_MEASURED = re.compile(r" *iteration (\d+)/(\d+): worst training loss ([^ ,]+),? *(.*)")


class Picture:
    """Plain lines, each with its run's number before it.

    Args:
        console: where they go.
        jobs: the runs, in order.
        places: how many of them go side by side.
    """

    def __init__(self, console: Console, jobs: Sequence[Job], places: int) -> None:
        self._console, self._jobs, self._places = console, jobs, places

    def __enter__(self) -> Picture:
        self._print(f"{len(self._jobs)} runs, {self._places} side by side")
        return self

    def __exit__(self, *_: object) -> None:
        """The last has ended, or an error ends them all."""

    def started(self, job: Job) -> None:
        """A run begins."""

    def said(self, job: Job, line: str) -> None:
        """A run has printed a line."""
        self._print(line if line == job.title else self._marked(job, line))

    def ended(self, job: Job, killed_by: str | None) -> None:
        """A run has ended, by itself where `killed_by` is None."""

    def look(self) -> None:
        """Show what is new; called several times a second."""

    def _marked(self, job: Job, line: str) -> str:
        return f"{job.number + 1:>{len(str(job.total))}}| {line}"

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

    def __init__(self, console: Console, jobs: Sequence[Job], places: int) -> None:
        super().__init__(console, jobs, places)
        self._running: dict[Job, _Running] = {}
        self._shared = set.intersection(*(set(job.overrides) for job in jobs))  # in all of them
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

    def started(self, job: Job) -> None:
        self._running[job] = _Running()

    def said(self, job: Job, line: str) -> None:
        if "warning:" in line or "failed:" in line:
            self._print(self._marked(job, line))
        elif line != job.title:
            self._running[job].say(line)

    def ended(self, job: Job, killed_by: str | None) -> None:
        said = self._running.pop(job).lines
        self._ended += 1
        self._killed += killed_by is not None
        title = f"[run {job.number + 1} of {job.total}] {self._own(job)}"
        for line in (title, *said):  # its verdict and its folder
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
        for job, running in sorted(self._running.items()):
            table.add_row(str(job.number + 1), self._own(job), *running.row())
        table.caption = self._counts()
        return table

    def _own(self, job: Job) -> str:
        """What tells the run from others."""
        own = [one for one in job.overrides if one not in self._shared]
        return " ".join(own or job.overrides)

    def _counts(self) -> str:
        total, running = len(self._jobs), len(self._running)
        waiting = total - self._ended - running
        words = f"{self._ended} of {total} ended, {running} running, {waiting} waiting"
        if self._killed:
            words += f", {self._killed} killed"
        if self._ended and self._ended < total:
            left = (time.monotonic() - self._begun) / self._ended * (total - self._ended)
            words += f"; about until {time.strftime('%H:%M', time.localtime(time.time() + left))}"
        return words


def make_picture(jobs: Sequence[Job], places: int) -> Picture:
    """The table on a terminal that can show one, else lines."""
    console = make_console()
    kind = LivePicture if console.is_interactive else Picture
    return kind(console, jobs, places)
