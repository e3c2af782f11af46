"""`robustmd reproduce RUN_DIR`: a finished run, trained again elsewhere and compared."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from robustmd.commands.evaluate import check_data
from robustmd.config import settings
from robustmd.config.loading import load_domains
from robustmd.config.typed import check_taken, typed_from_file
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
from robustmd.training.run import run as train

CHANGEABLE = ("paths", "runtime", "checkpoint", "logging", "data.root", "data.manifest")
EPILOG = """\
verdicts: identical; within floating-point tolerance; within seed spread (code 0); different (code
1). docs/runs.md says what each means. Where it can, the reproduction uses the device and the number
of threads that this machine would choose: name others with runtime.device and runtime.threads.

examples:
  robustmd reproduce outputs/digits_mini/opt/3f2a91c0/seed=0
  robustmd reproduce outputs/digits_mini/opt/3f2a91c0/seed=0 runtime.threads=1 --out again
"""


def main(arguments: Sequence[str]) -> int:
    """Train again, compare, say what differs. Code 1 where the numbers are different."""
    parser = argparse.ArgumentParser(
        prog="robustmd reproduce",
        description="Train a finished run again elsewhere and compare the numbers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN_DIR", help="outputs/<data>/<method>/<hash>/seed=<n>")
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="paths.data=…, paths.cache=…, runtime.device=…, runtime.threads=…",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="outputs tree for the reproduction, kept (default: a temporary one, kept unless the "
        "numbers are identical)",
    )
    given = parser.parse_args(list(arguments))
    console = make_console()
    old = _finished(Path(given.run))
    config = _config(old, given.overrides)
    check_data(old.path, old.environment, load_domains(config, lambda _: None))
    out = given.out or Path(tempfile.mkdtemp(prefix="robustmd-reproduce-"))
    if out.resolve() == _tree(old.path):
        raise UserError(f"--out {out}: holds the run itself; name another folder")
    config.paths.outputs = str(out.absolute())
    try:
        outcome = train(config, console, [])
    finally:
        if given.out is None:
            with contextlib.suppress(OSError):  # only where nothing was begun in it
                out.rmdir()
    if outcome.exit_code:
        hint = f"; name the folder to go on: --out {out}" if given.out is None else ""
        console.print(f"  {outcome.message}{hint}", soft_wrap=True)
        return outcome.exit_code
    new = _finished(outcome.directory)
    comparison = compare(old, new, _seeds(old))
    _show(comparison, old, new, console)
    if given.out is None and comparison.verdict == IDENTICAL:
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
    check_taken(overrides, CHANGEABLE, "reproduce")
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
