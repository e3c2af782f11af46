"""What a person sees of runs side by side: a table on a terminal, marked lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from robustmd.config.composing import as_typed
from robustmd.console import make_console


class Picture:
    """Plain lines, each with its run's number before it.

    Args:
        console: where they go.
        overrides: of every run, in order.
        places: how many runs go side by side.
    """

    def __init__(self, console: Console, overrides: Sequence[Sequence[str]], places: int) -> None:
        self._console, self._overrides, self._places = console, overrides, places
        self._width = len(str(len(overrides)))

    def __enter__(self) -> Picture:
        self._print(f"{len(self._overrides)} runs, {self._places} side by side")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def title(self, number: int) -> str:
        """What the run is called in every line of a sweep."""
        settings = " ".join(as_typed(self._overrides[number]))
        return f"[run {number + 1} of {len(self._overrides)}] {settings}"

    def started(self, number: int) -> None:
        """A run begins."""

    def said(self, number: int, line: str) -> None:
        """A run has printed a line."""
        is_title = line == self.title(number)
        self._print(line if is_title else f"{number + 1:>{self._width}}| {line}")

    def ended(self, number: int, killed_by: str | None) -> None:
        """A run has ended, by itself where `killed_by` is None."""

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


class LivePicture(Picture):
    """A table of the runs under way with the last line of each; what ended stands above it."""

    def __init__(self, console: Console, overrides: Sequence[Sequence[str]], places: int) -> None:
        super().__init__(console, overrides, places)
        self._lines: dict[int, deque[str]] = {}  # run under way -> its last two lines
        self._shared = set.intersection(*map(set, overrides))  # what tells no run from another
        self._ended = self._killed = 0
        self._begun = time.monotonic()
        self._live = Live(console=console, get_renderable=self._table, transient=True)

    def __enter__(self) -> Picture:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def started(self, number: int) -> None:
        self._lines[number] = deque(maxlen=2)

    def said(self, number: int, line: str) -> None:
        self._lines[number].append(line)
        if "warning:" in line or "failed:" in line:
            self._print(f"{number + 1:>{self._width}}| {line}")

    def ended(self, number: int, killed_by: str | None) -> None:
        said = self._lines.pop(number)
        self._ended += 1
        self._killed += killed_by is not None
        for line in (self.title(number), *said):  # its verdict and its folder
            self._print(line)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, title_justify="left", expand=True)
        table.add_column("run", justify="right", no_wrap=True)
        table.add_column("settings", ratio=2, no_wrap=True, overflow="ellipsis")
        table.add_column("now", ratio=3, no_wrap=True, overflow="ellipsis")
        for number, said in sorted(self._lines.items()):
            own = [one for one in self._overrides[number] if one not in self._shared]
            settings = " ".join(as_typed(own))
            table.add_row(str(number + 1), settings, said[-1].strip() if said else "starts")
        table.caption = self._counts()
        return table

    def _counts(self) -> str:
        total, running = len(self._overrides), len(self._lines)
        words = f"{self._ended} of {total} ended, {running} running, "
        words += f"{total - self._ended - running} waiting"
        if self._killed:
            words += f", {self._killed} killed"
        if 0 < self._ended < total:
            left = (time.monotonic() - self._begun) / self._ended * (total - self._ended)
            words += f"; about until {time.strftime('%H:%M', time.localtime(time.time() + left))}"
        return words


def make_picture(overrides: Sequence[Sequence[str]], places: int) -> Picture:
    """The table on a terminal that can show one, else lines."""
    console = make_console()
    kind = LivePicture if console.is_interactive else Picture
    return kind(console, overrides, places)
