"""`robustmd train`: Hydra composes, `run()` trains; one run or a sweep in this process."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from robustmd.errors import UserError
from robustmd.training.composing import (
    check_flags,
    composed_error,
    sweep_size,
    with_keys_of_swept_groups,
    with_names_as_text,
)
from robustmd.training.sweep import Failure, append_failure, read_failures
from robustmd.typed import typed

if TYPE_CHECKING:
    from robustmd.training.run import Outcome

CONFIG_PATH, CONFIG_NAME = "pkg://robustmd.conf", "config"
FAILURES = "ROBUSTMD_SWEEP_FAILURES"  # a file that the jobs of a sweep, maybe elsewhere, append to
SWEEP_SIZE = "ROBUSTMD_SWEEP_SIZE"
SWEEP_FOLDER = "ROBUSTMD_SWEEP_FOLDER"  # what Hydra writes of a sweep goes there, and then away


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd train` with Hydra's overrides and flags. Returns the exit code."""
    check_flags(arguments)
    arguments = with_keys_of_swept_groups(with_names_as_text(arguments))
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions reach us instead of Hydra's own printing
    outcomes: list[Outcome | Exception] = []

    # A function of its own for every call, so that a single run can hand its outcome back; in a
    # sweep, whose jobs may run in other processes, failures go through the record.
    @hydra.main(version_base="1.3", config_path=CONFIG_PATH, config_name=CONFIG_NAME)
    def task(composed: DictConfig) -> None:
        outcomes.append(_job(composed))

    with _arguments(arguments), _sweep_record() as record:
        try:
            task()
        except SystemExit as stop:
            _conclude(read_failures(record))
            return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except UserError:
            raise
        except Exception as error:  # Hydra's, which asserts much of what was typed: no job raises
            raise UserError(composed_error(error, arguments)) from None
        if len(outcomes) == 1 and not record.exists():
            return _exit_code(outcomes[0])
        return _conclude(read_failures(record))


def _exit_code(outcome: Outcome | Exception) -> int:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.exit_code


def _job(composed: DictConfig) -> Outcome | Exception:
    """One job. Nothing is raised through Hydra, which would add lines of its own."""
    from robustmd.training.run import run  # noqa: PLC0415 - torch is not needed for --cfg, --info

    console = Console(highlight=False)
    hydra_config = HydraConfig.get()
    in_sweep = hydra_config.mode == RunMode.MULTIRUN
    title = _title(hydra_config) if in_sweep else ""
    if title:
        console.print(title, markup=False, soft_wrap=True)
    directories: list[Path] = []
    try:
        config = typed(composed)  # before its overrides: here a reference to nothing is a line
        overrides = list(hydra_config.overrides.task)
        outcome = run(config, console, overrides, directories.append)
    except Exception as error:
        if in_sweep:
            _note_failure(Failure.of(error, title, *map(str, directories)))
            print(f"  failed: {error}", file=sys.stderr)  # noqa: T201
        return error
    console.print(f"  {outcome.message}", markup=False, soft_wrap=True)
    console.print(f"  {_shown(outcome.directory)}", markup=False, soft_wrap=True)
    if outcome.exit_code and in_sweep:
        directory = str(outcome.directory)
        _note_failure(Failure(outcome.exit_code, outcome.message, title, directory))
        if outcome.status == "interrupted":  # Ctrl-C means the sweep, not one job of it
            raise SystemExit(outcome.exit_code)
    if outcome.stop_code and in_sweep:
        raise SystemExit(outcome.stop_code)
    return outcome


def _note_failure(failure: Failure) -> None:
    append_failure(Path(os.environ[FAILURES]), failure)


def _title(hydra_config: Any) -> str:
    overrides = " ".join(hydra_config.overrides.task)
    size = os.environ.get(SWEEP_SIZE)
    return f"[run {hydra_config.job.num + 1}{' of ' + size if size else ''}] {overrides}"


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
        print(f"  {failure.title}: {failure.message}{where}", file=sys.stderr)  # noqa: T201
    codes = {failure.exit_code for failure in failures}
    return codes.pop() if len(codes) == 1 else 1


@contextmanager
def _arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Hydra reads sys.argv itself; the sub-command must not be in it."""
    before = sys.argv
    # The completion script binds itself to the program's name, which has no sub-command in it.
    sys.argv = ["robustmd" if "-sc" in arguments else "robustmd train", *arguments]
    try:
        size = sweep_size(arguments)
        if size:
            os.environ[SWEEP_SIZE] = str(size)
        yield
    finally:
        sys.argv = before
        os.environ.pop(SWEEP_SIZE, None)


@contextmanager
def _sweep_record() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="robustmd-") as folder:
        record = Path(folder) / "failures.jsonl"
        os.environ[FAILURES], os.environ[SWEEP_FOLDER] = str(record), folder
        try:
            yield record
        finally:
            os.environ.pop(FAILURES, None)
            os.environ.pop(SWEEP_FOLDER, None)
