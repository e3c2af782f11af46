"""`robustmd train`: Hydra composes, `run()` trains; one run or a sweep in this process."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import RunMode
from omegaconf import DictConfig

from robustmd.commands import make_parser
from robustmd.config import settings, validation
from robustmd.config.composing import (
    as_hydra_reads,
    as_typed,
    check_arguments,
    composed_error,
    publish,
)
from robustmd.config.explained import explain_all
from robustmd.config.identity import number_changing, run_folder
from robustmd.config.loading import domain_names
from robustmd.config.plugins import config_folder, load_plugins
from robustmd.config.typed import typed
from robustmd.console import make_console, steady_streams
from robustmd.errors import UserError, printable
from robustmd.runs.lock import Busy
from robustmd.sweeping.failures import Failure, note_failure, take_failures
from robustmd.sweeping.picture import run_title
from robustmd.sweeping.slots import processes

if TYPE_CHECKING:
    from robustmd.training.run import Outcome

CONFIG_PATH, CONFIG_NAME = "pkg://robustmd.conf", "config"
LOOK = 5.0  # seconds between two looks at a run that another process is at work on
LIST = "--list"
FLAGS = {
    "-m --multirun": "train every combination of values with commas between, as seed=0,1,2",
    LIST: "name the runs, train none",
    "--hydra-help": "Hydra's own flags",
}
EPILOG = """\
examples:
  robustmd train method=opt data=digits_mini method.lam=0.1
  robustmd train -m method=even,opt seed=0,1,2
  robustmd train experiment=demo
  robustmd train method=opt --cfg job
"""
SWEEP_FOLDER = "ROBUSTMD_SWEEP_FOLDER"  # what Hydra writes of a sweep goes there, and then away


def parser() -> argparse.ArgumentParser:
    """For --help and for shells: Hydra reads the arguments itself."""
    parser = make_parser("train", EPILOG, usage="robustmd train [-m] [key=value …] [flags]")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="all are listed below")
    for flag, what in FLAGS.items():
        parser.add_argument(*flag.split(), action="store_true", help=what)
    parser.add_argument("--cfg", choices=("job", "hydra", "all"), help="show the config, train not")
    parser.add_argument("--config-dir", metavar="DIR", help="options and experiments of your own")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd train` with Hydra's overrides and flags. Returns the exit code."""
    if processes() == 1:
        return _main(arguments)
    from robustmd.training.distributed import joined  # noqa: PLC0415 - torch, and only for torchrun

    with joined():
        return _main(arguments)


def _main(arguments: Sequence[str]) -> int:
    if {"-h", "--help"} & {*arguments}:
        parser().print_help()
        explain_all([text for text in arguments if text[:1] != "-"], make_console())
        return 0
    listing = LIST in arguments
    arguments = [text for text in arguments if text != LIST]
    check_arguments(arguments)
    arguments = as_hydra_reads(arguments)
    if folder := config_folder():
        arguments = [f"--config-dir={folder}", *arguments]
    if listing:  # in order, and nothing is trained
        typed = (text for text in arguments if "hydra.launcher." not in text.partition("=")[0])
        arguments = [*typed, "hydra/launcher=basic"]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions reach us instead of Hydra's own printing
    publish()
    from hydra_plugins.robustmd import RowsSweeper  # noqa: PLC0415 - Hydra's names for ours
    from hydra_plugins.robustmd.launcher import SideBySide  # noqa: PLC0415

    for plugin in (RowsSweeper, SideBySide):  # it finds them in a wheel alone
        Plugins.instance().register(plugin)
    task = Task(listing)
    through_hydra = hydra.main(
        version_base="1.3", config_path=CONFIG_PATH, config_name=CONFIG_NAME
    )(task)
    with _arguments(arguments), _sweep_folder(), contextlib.closing(SideBySide):
        try:
            through_hydra()
        except SystemExit as stop:
            _conclude(take_failures() or task.failures)
            return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except UserError:
            raise
        except Exception as error:  # Hydra's, which asserts much of what was typed: no job raises
            raise UserError(composed_error(error, arguments)) from None
        failures = take_failures() or task.failures
        if len(task.outcomes) == 1 and not failures:
            return _exit_code(task.outcomes[0])
        return _conclude(failures)


class Task:
    """What Hydra calls for each run.

    Its outcomes are known where they were made: the jobs of a sweep may run in other processes,
    whose failures come back through the record.
    """

    def __init__(self, listing: bool) -> None:
        self.listing = listing
        self.outcomes: list[Outcome | Exception | None] = []
        self.failures: list[Failure] = []

    def __call__(self, composed: DictConfig) -> None:
        with steady_streams():  # another process has streams of its own
            if not self.listing:
                self.outcomes.append(_job(composed, self.failures))
                return
            try:
                self.check(composed, as_typed(HydraConfig.get().overrides.task))
            except UserError as error:  # nothing is raised through Hydra
                self.outcomes.append(error)

    def check(self, composed: DictConfig, overrides: Sequence[str]) -> None:
        """Raises UserError for a config that cannot be. With `listing`, print the run's folder
        below paths.outputs, and what was typed for it."""
        load_plugins(_modules(composed))
        config, _ = validation.shortened(typed(composed), overrides)
        validation.validate(config)
        if self.listing or config.data.names():
            config = validation.settled(config, domain_names(config)).config
        if self.listing:
            identity = number_changing(settings.as_dict(config))
            print(run_folder(Path(), identity, config.seed), " ".join(overrides))  # noqa: T201


def _exit_code(outcome: Outcome | Exception | None) -> int:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.exit_code if outcome else 0


def _job(composed: DictConfig, failures: list[Failure]) -> Outcome | Exception:
    """One job. Nothing is raised through Hydra, which would add lines of its own.

    `failures`: where that of a job of a sweep is added.
    """
    from robustmd.training.run import run  # noqa: PLC0415 - torch is not needed for --cfg, --info

    console = make_console()
    hydra_config = HydraConfig.get()
    in_sweep = hydra_config.mode == RunMode.MULTIRUN
    title = _title(hydra_config) if in_sweep else ""
    if title:
        console.print(title, soft_wrap=True)
    directories: list[Path] = []
    try:
        load_plugins(_modules(composed))  # a job may run in a process of its own
        config = typed(composed)  # before its overrides: here a reference to nothing is a line
        overrides = as_typed(hydra_config.overrides.task)
        outcome = _in_turn(run, config, console, overrides, directories.append)
    except Exception as error:
        if in_sweep:
            _note(Failure.of(error, title, *map(str, directories)), failures)
            print(f"  failed: {printable(error)}", file=sys.stderr)  # noqa: T201
        return error
    console.print(f"  {outcome.message}", soft_wrap=True)
    console.print(f"  {_shown(outcome.directory)}", soft_wrap=True)
    if outcome.exit_code and in_sweep:
        directory = str(outcome.directory)
        _note(Failure(outcome.exit_code, outcome.message, title, directory), failures)
        if outcome.status == "interrupted":  # Ctrl-C means the sweep, not one job of it
            raise SystemExit(outcome.exit_code)
    if outcome.stop_code and in_sweep:
        raise SystemExit(outcome.stop_code)
    return outcome


def _in_turn(run: Callable[..., Outcome], config: Any, console: Any, *further: Any) -> Outcome:
    """The run's outcome. Beside other runs of a sweep, one that is the same run is waited for."""
    waited_for = ""
    while True:
        try:
            return run(config, console, *further)
        except Busy as busy:
            if multiprocessing.parent_process() is None:
                raise
            if str(busy) != waited_for:
                console.print(f"  waits: {busy}", soft_wrap=True)
            waited_for = str(busy)
            time.sleep(LOOK)


def _modules(composed: DictConfig) -> list[str]:
    found = composed.get("imports") or []
    if isinstance(found, str) or not all(isinstance(name, str) for name in found):
        raise UserError(f"imports={found}: must be a list of modules, as imports=[mine]")
    return list(found)


def _note(failure: Failure, failures: list[Failure]) -> None:
    failures.append(failure)  # without a record, what this process knows is told
    note_failure(failure)


def _title(hydra_config: Any) -> str:
    return run_title(hydra_config.job.num, hydra_config.overrides.task)


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _conclude(failures: list[Failure]) -> int:
    """Every failure of a sweep, at its end; 2 where all were the user's to mend."""
    if not failures:
        return 0
    runs = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
    print(f"robustmd: {runs} did not finish:", file=sys.stderr)  # noqa: T201
    for failure in failures:
        where = f" ({_shown(Path(failure.directory))})" if failure.directory else ""
        line = printable(f"{failure.title}: {failure.message}{where}")
        print(f"  {line}", file=sys.stderr)  # noqa: T201
    codes = {failure.exit_code for failure in failures}
    return codes.pop() if len(codes) == 1 else 1


@contextmanager
def _arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Hydra reads sys.argv itself: no sub-command in it, and no flag among the key=value."""
    before = sys.argv
    sys.argv = ["robustmd train", *sorted(arguments, key=_is_override)]
    try:
        yield
    finally:
        sys.argv = before


def _is_override(text: str) -> bool:
    return "=" in text and not text.startswith("-")


@contextmanager
def _sweep_folder() -> Iterator[None]:
    """For what Hydra writes of a sweep; without a folder for temporary files it does without."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="robustmd-"))
            os.environ[SWEEP_FOLDER] = folder
            stack.callback(os.environ.pop, SWEEP_FOLDER, None)
        yield
