"""What a person sees while a run trains: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from robustmd.errors import printable


class _Rate(ProgressColumn):
    """Iterations per second."""

    def render(self, task: Task) -> Text:
        return Text(
            f"{task.speed:.1f} it/s" if task.speed else "… it/s", style="progress.data.speed"
        )


class RunProgress:
    """The progress of one run.

    Args:
        console: where to show it.
        iterations: T.
        done: iterations already done, for a run that goes on.
    """

    def __init__(self, console: Console, iterations: int, done: int = 0) -> None:
        self._console = console
        self._iterations = iterations
        self._weights = ""
        self._worst = ""
        self._bar = Progress(
            TextColumn("{task.completed:.0f}/{task.total:.0f}", table_column=_whole()),
            BarColumn(bar_width=12),
            _Rate(table_column=_whole()),
            TimeRemainingColumn(compact=True, table_column=_whole()),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            console=console,
            transient=True,
            disable=not console.is_interactive,
        )
        self._task = self._bar.add_task("", total=iterations, completed=done)

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def iterated(self, iteration: int, weights: Mapping[str, float]) -> None:
        """After a log interval: where the run is and its weights p."""
        self._weights = printable("p " + " ".join(_few(weights)))
        self._bar.update(
            self._task, completed=iteration, description=f"{self._weights}  {self._worst}"
        )

    def say(self, line: str) -> None:
        """A line of its own, above the bar."""
        self._console.print(f"  {line}", soft_wrap=True)

    def measured(self, iteration: int, worst_loss: float, worst_accuracy: float) -> None:
        """After a measurement: the worst domain's loss (nats) and accuracy (%) in training."""
        self._worst = f"worst loss {worst_loss:.4f}"
        if not self._console.is_interactive:
            self._console.print(
                f"  iteration {iteration}/{self._iterations}: worst training loss "
                f"{worst_loss:.4f}, accuracy {worst_accuracy:.2f} %  {self._weights}",
                highlight=False,
                soft_wrap=True,
            )


def _whole() -> Column:
    """A column that keeps its width on a narrow terminal."""
    return Column(no_wrap=True)


def _few(weights: Mapping[str, float], most: int = 4) -> list[str]:
    """Every weight, or the largest: with many domains all would not fit, and they are small."""
    if len(weights) <= most:
        return [f"{name} {p:.2f}" for name, p in weights.items()]
    largest = sorted(weights.items(), key=lambda item: -item[1])[:most]
    return [f"{name} {p:.2g}" for name, p in largest] + ["…"]
