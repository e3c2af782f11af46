"""What a person sees of runs side by side: their progress on a terminal, marked lines elsewhere."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from robustmd.console import make_console
from robustmd.sweep.jobs import Job

_PACE = 3600.0  # seconds of a run's measurements that its time left is estimated from
_MEASURED = re.compile(r" *iteration (\d+)/(\d+): (.*)")


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

    def ended(self, job: Job) -> None:
        """A run has ended."""

    def look(self) -> None:
        """Show what is new; called several times a second."""

    def _marked(self, job: Job, line: str) -> str:
        return f"{job.number + 1:>{len(str(job.total))}}| {line}"

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


class LivePicture(Picture):
    """A line for each run under way: its settings, how far it is, the time left by its own pace,
    what it last said; the whole sweep's below. What ended stands above them."""

    def __init__(self, console: Console, jobs: Sequence[Job], places: int) -> None:
        super().__init__(console, jobs, places)
        self._shared = set.intersection(*(set(job.overrides) for job in jobs))  # in all of them
        self._lines: dict[int, deque[str]] = {}
        self._tasks: dict[int, TaskID] = {}
        settings = Column(no_wrap=True, overflow="ellipsis", max_width=console.width * 2 // 5)
        said = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # what room is left
        # Its own thread draws while this one prints, and takes a line of what stands above away.
        self._progress = Progress(
            TextColumn("{task.description}", table_column=settings, markup=False),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[said]}", table_column=said, markup=False),
            console=console,
            expand=True,
            transient=True,
            auto_refresh=False,
            speed_estimate_period=_PACE,
        )
        self._sweep = self._progress.add_task("all runs", total=len(jobs), said="")

    def __enter__(self) -> Picture:
        super().__enter__()
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, job: Job) -> None:
        self._lines[job.number] = deque(maxlen=2)
        title = f"{job.number + 1} {self._own(job)}"
        self._tasks[job.number] = self._progress.add_task(title, total=None, said="starts")

    def said(self, job: Job, line: str) -> None:
        if "warning:" in line or "failed:" in line:
            self._print(self._marked(job, line))
            return
        if line == job.title:
            return
        self._lines[job.number].append(line)
        task = self._tasks[job.number]
        if measured := _MEASURED.match(line):
            done, total, line = int(measured[1]), int(measured[2]), measured[3]
            self._progress.update(task, total=total, completed=done)
        self._progress.update(task, said=line.strip())

    def ended(self, job: Job) -> None:
        self._progress.remove_task(self._tasks.pop(job.number))
        self._progress.advance(self._sweep)
        title = f"[run {job.number + 1} of {job.total}] {self._own(job)}"
        for line in (title, *self._lines.pop(job.number)):  # its verdict and its folder
            self._print(line)

    def look(self) -> None:
        self._progress.refresh()

    def _own(self, job: Job) -> str:
        """What tells the run from others."""
        own = [one for one in job.overrides if one not in self._shared]
        return " ".join(own or job.overrides)


def make_picture(jobs: Sequence[Job], places: int) -> Picture:
    """The progress on a terminal that can show it, else lines."""
    console = make_console()
    kind = LivePicture if console.is_interactive else Picture
    return kind(console, jobs, places)
