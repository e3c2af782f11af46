"""A finished run, trained again elsewhere and compared."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from robustmd.config import settings
from robustmd.config.loading import load_domains
from robustmd.config.typed import typed_from_file
from robustmd.console import make_console
from robustmd.errors import UserError
from robustmd.runs.comparison import (
    DIFFERENT,
    IDENTICAL,
    Comparison,
    compare,
    environment_differences,
)
from robustmd.runs.reader import collect
from robustmd.runs.run import Run
from robustmd.training.evaluation import check_data
from robustmd.training.run import run as train


def reproduce(path: Path, overrides: Sequence[str], kept: Path | None) -> int:
    """Train again in `kept` (None: a temporary folder), compare, say what differs. Code 1 where the
    numbers are different. Raises UserError."""
    console = make_console()
    old = _finished(path)
    config = _config(old, overrides)
    check_data(old.path, old.environment, load_domains(config, lambda _: None))
    out = kept or Path(tempfile.mkdtemp(prefix="robustmd-reproduce-"))
    if out.resolve() == _tree(old.path):
        raise UserError(f"--out {out}: holds the run itself; name another folder")
    config.paths.outputs = str(out.absolute())
    try:
        outcome = train(config, console, [])
    finally:
        if kept is None:
            with contextlib.suppress(OSError):  # only where nothing was begun in it
                out.rmdir()
    if outcome.exit_code:
        hint = f"; name the folder to go on: --out {out}" if kept is None else ""
        console.print(f"  {outcome.message}{hint}", soft_wrap=True)
        return outcome.exit_code
    new = _finished(outcome.directory)
    comparison = compare(old, new, _seeds(old))
    _show(comparison, old, new, console)
    if kept is None and comparison.verdict == IDENTICAL:
        shutil.rmtree(out)
    else:
        console.print(f"  {new.path}", soft_wrap=True)
    return 0 if comparison.verdict != DIFFERENT else 1


def _finished(path: Path) -> Run:
    """The run in `path`, where it has finished and is sound."""
    found = collect(path)
    if len(found.runs) == 1 and found.runs[0].path == found.outputs:
        return found.runs[0]
    reason = next((p.reason for p in found.problems if p.scope == "run"), "no run directory")
    raise UserError(f"{path}: {reason}; only a finished run can be compared")


def _config(old: Run, overrides: Sequence[str]) -> settings.Config:
    config = typed_from_file(old.config, overrides)
    config.force, config.resume, config.extend = False, True, False
    settings.validate(config)
    return config


def _tree(run: Path) -> Path:
    return run.resolve().parents[3]


def _seeds(old: Run) -> list[Run]:
    """The finished runs beside `old`, of the same settings, on the same bytes."""
    fingerprint = old.environment.get("data_fingerprint")
    return [
        run
        for run in collect(old.path.parent).runs
        if run.environment.get("data_fingerprint") == fingerprint
    ]


def _show(comparison: Comparison, old: Run, new: Run, console: Console) -> None:
    lines = [comparison.verdict, *(f"  {reason}" for reason in comparison.reasons)]
    differing = environment_differences(old.environment, new.environment)
    lines += [f"  {line}" for line in differing] or ["  in the same environment"]
    for line in lines:
        console.print(line, soft_wrap=True)
