"""A run under way: what its user sees of it, and the signals that stop it."""

from __future__ import annotations

import contextlib
import io
import math
import signal
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from robustmd.errors import printable

MOST = 4  # weights that are shown: with many domains all would not fit, and most are small
BETWEEN, CELL_WIDTH = 0.2, 100  # seconds and letters, of a bar in a notebook
# Ctrl-C, a scheduler's end, a closed terminal, two preemptions, a used-up limit of CPU time
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")
PREEMPTIONS = ("SIGUSR1", "SIGUSR2")
ONE_PRESS = 1.0  # seconds: a launcher may pass a Ctrl-C on that has come here already

# --- the bar --------------------------------------------------------------------------------------


class _Rate(ProgressColumn):
    """Iterations per second."""

    def render(self, task: Task) -> Text:
        rate = f"{task.speed:.1f} it/s" if task.speed else "… it/s"
        return Text(rate, style="progress.data.speed")


class RunProgress:
    """A bar on a terminal or in a notebook, plain lines elsewhere; for use in a `with`.

    In a notebook's cell the bar is text that changes in place and stays: rich's own needs
    ipywidgets there, and without them shows nothing.

    Args:
        console: where to show it.
        iterations: T.
        done: iterations already done, for a run that goes on.
    """

    def __init__(self, console: Console, iterations: int, done: int = 0) -> None:
        self._console, self._iterations = console, iterations
        self._weights = self._worst = ""
        whole = Column(no_wrap=True)  # keeps its width on a narrow terminal
        cut = Column(no_wrap=True, overflow="ellipsis")
        self._bar = Progress(
            TextColumn("{task.completed:.0f}/{task.total:.0f}", table_column=whole),
            BarColumn(bar_width=12),
            _Rate(table_column=whole.copy()),
            TimeRemainingColumn(compact=True, table_column=whole.copy()),
            TextColumn("{task.description}", markup=False, table_column=cut),
            console=console,
            transient=True,
            disable=not console.is_interactive or console.is_jupyter,
        )
        self._task = self._bar.add_task("", total=iterations, completed=done)
        self._cell: Any = None  # a handle of the cell's output
        self._shown_at = -math.inf

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        self._show_in_cell()

    def iterated(self, iteration: int, weights: Mapping[str, float]) -> None:
        """After a log interval: where the run is and its weights p, the largest of many."""
        shown = [f"{name} {p:.2f}" for name, p in weights.items()]
        if len(weights) > MOST:
            largest = sorted(weights.items(), key=lambda item: -item[1])[:MOST]
            shown = [*(f"{name} {p:.2g}" for name, p in largest), "…"]
        self._weights = printable("p " + " ".join(shown))
        description = f"{self._weights}  {self._worst}"
        self._bar.update(self._task, completed=iteration, description=description)
        if time.monotonic() - self._shown_at >= BETWEEN:
            self._show_in_cell()

    def measured(self, iteration: int, worst_loss: float, worst_accuracy: float | None) -> str:
        """After a measurement: the worst domain's loss and accuracy (%; None: there is none) in
        training. Returns the line, which is printed where no bar shows it."""
        accuracy = "" if worst_accuracy is None else f", accuracy {worst_accuracy:.2f} %"
        self._worst = f"worst loss {worst_loss:.4f}"
        line = (
            f"iteration {iteration}/{self._iterations}: worst training loss "
            f"{worst_loss:.4f}{accuracy}  {self._weights}"
        )
        if not self._console.is_interactive and not self._console.is_jupyter:
            self._console.print(f"  {line}", highlight=False, soft_wrap=True)
        return line

    def say(self, line: str) -> None:
        """A line of its own, above the bar."""
        self._console.print(f"  {line}", soft_wrap=True)

    def _show_in_cell(self) -> None:
        if not self._console.is_jupyter:
            return
        from IPython.display import display  # noqa: PLC0415 - is there where a notebook is

        text = io.StringIO()
        plain = Console(file=text, width=CELL_WIDTH, force_jupyter=False, color_system=None)
        plain.print(self._bar)
        content = {"text/plain": text.getvalue().rstrip()}
        if self._cell is None:
            self._cell = display(content, raw=True, display_id=True)
        else:
            self._cell.update(content, raw=True)
        self._shown_at = time.monotonic()


# --- signals --------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """The run was asked to stop; `code` is the process's exit code (128 + signal).

    No `Exception`, as KeyboardInterrupt is none: nothing on the way takes it for a fault.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"stopped by {name}")
        # A preemption is an end like any other to whoever waits.
        self.code = 128 + int(signal.SIGTERM if name in PREEMPTIONS else getattr(signal, name))


class StopRequest:
    """Turns signals into a question that the loop asks: `check()` raises where one has come.

    A second Ctrl-C does not wait for the loop. A SIGHUP that is ignored (nohup) stays so. A
    launcher that has taken SIGTERM for itself keeps it, and gets the preemptions that it waits for
    once the run has stopped: it queues the job again.
    """

    def __init__(self) -> None:
        self._received: str | None = None
        self._received_at = 0.0
        self._is_at_once = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        for name in SIGNALS:
            number = getattr(signal, name, None)  # Windows lacks some
            before = None if number is None else signal.getsignal(number)
            is_ignored = name == "SIGHUP" and before == signal.SIG_IGN
            if number is None or is_ignored or (name == "SIGTERM" and callable(before)):
                continue
            try:
                self._before[number] = signal.signal(number, self._receive)
            except ValueError:  # not the main thread: somebody else's program has the signals
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._received in PREEMPTIONS:
            number = getattr(signal, self._received)
            if callable(self._before.get(number)):
                signal.raise_signal(number)

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
        return 0 if self._received is None else Interrupted(self._received).code
