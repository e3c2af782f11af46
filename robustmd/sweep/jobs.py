"""One run of a sweep, from what was typed for it to how it ended; in whichever process."""

from __future__ import annotations

import multiprocessing
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from robustmd.config.check import make_config
from robustmd.config.plugins import imports_of, imports_of_experiments, load_plugins
from robustmd.console import make_console, steady_streams
from robustmd.errors import UserError, printable
from robustmd.runs.lock import Busy

if TYPE_CHECKING:
    from robustmd.training.run import Outcome

LOOK = 5.0  # seconds between two looks at a run that another process is at work on


class Job(NamedTuple):
    """A run of a sweep: `number` counts from 0."""

    number: int
    total: int
    overrides: Sequence[str]

    @property
    def title(self) -> str:
        """What it is called in every line of the sweep."""
        return f"[run {self.number + 1} of {self.total}] {' '.join(self.overrides)}"


class Ended(NamedTuple):
    """How a job ended. message: why, where exit_code is not 0; stops: the exit code of the whole
    sweep, which was asked to stop, else 0."""

    exit_code: int
    message: str
    directory: str = ""
    stops: int = 0


def train_one(overrides: Sequence[str], console: Any, directories: list[Path]) -> Outcome:
    """Train the run that the overrides name, or find it finished.

    directories: where its own is added as soon as it is known. Raises what `run` does.
    """
    from robustmd.training.run import run  # noqa: PLC0415 - torch is not needed for --list

    config, waited_for = make_config(overrides), ""
    while True:
        try:
            outcome = run(config, console, overrides, directories.append)
        except Busy as busy:  # beside other runs of a sweep, one that is the same run is waited for
            if multiprocessing.parent_process() is None:
                raise
            if str(busy) != waited_for:
                console.print(f"  waits: {busy}", soft_wrap=True)
            waited_for = str(busy)
            time.sleep(LOOK)
        else:
            console.print(f"  {outcome.message}", soft_wrap=True)
            console.print(f"  {shown(outcome.directory)}", soft_wrap=True)
            return outcome


def run_job(job: Job) -> Ended:
    """Train a job's run. Nothing is raised: what failed is in what is returned."""
    directories: list[Path] = []
    with steady_streams():  # another process has streams of its own
        console = make_console()
        console.print(job.title, soft_wrap=True)
        try:
            load_plugins([*imports_of(job.overrides), *imports_of_experiments(job.overrides)])
            outcome = train_one(job.overrides, console, directories)
        except Exception as error:
            ended = _failed(error, directories)
            print(f"  failed: {printable(ended.message)}", file=sys.stderr)  # noqa: T201
            return ended
    interrupted = outcome.exit_code if outcome.status == "interrupted" else 0
    return Ended(
        outcome.exit_code,
        outcome.message,
        str(outcome.directory),
        interrupted or outcome.stop_code or 0,  # Ctrl-C means the sweep, not one job of it
    )


def _failed(error: Exception, directories: Sequence[Path]) -> Ended:
    """A user's mistake is its line and code 2; the rest is ours: code 1, with the place."""
    directory = str(directories[0]) if directories else ""
    if isinstance(error, UserError):
        return Ended(2, str(error), directory)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return Ended(1, f"a bug of ours at {where}: {type(error).__name__}: {error}", directory)


def shown(path: Path) -> str:
    """A path from the working folder, where it lies below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
