"""A finished run, trained again elsewhere: are the two the same, and if not, how far apart?

The verdicts, best first:

- `identical`: metrics.csv is the same but for the seconds, and so is weights.csv.
- `within floating-point tolerance`: untrained, every loss within `START_TOLERANCE` (so the weights
  and the data were the same); at the end every loss within `LOSS_TOLERANCE` (relative above 1 nat)
  and every accuracy within `ACCURACY_TOLERANCE` points, or one example. docs/runs.md says why.
- `within seed spread`: the worst training loss and the worst test accuracy lie in the 95 %
  prediction interval of a further seed, mean ± t₀.₉₇₅,ₙ₋₁ · s · √(1 + 1/n), over the n seeds of
  these settings that have finished, `LEAST_SEEDS` at least.
- `different`.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import special

from robustmd.config import validation
from robustmd.config.loading import load_domains
from robustmd.config.typed import typed_from_file
from robustmd.console import make_console
from robustmd.errors import UserError
from robustmd.runs import files
from robustmd.runs.reader import collect
from robustmd.runs.run import Run
from robustmd.runs.untrusted import Unreadable, read_frame
from robustmd.training.evaluation import check_data
from robustmd.training.run import run as train

START_TOLERANCE = 1e-4
LOSS_TOLERANCE = 0.05
ACCURACY_TOLERANCE = 1.5  # points
LEAST_SEEDS = 3
MACHINE = ("python", "platform", "cpu", "device", "threads", "processes")
ENVIRONMENT = ("robustmd", "git_commit", *MACHINE)

IDENTICAL = "identical"
TOLERANCE = "within floating-point tolerance"
SPREAD = "within seed spread"
DIFFERENT = "different"


def reproduce(path: Path, overrides: Sequence[str], kept: Path | None) -> int:
    """Train again in `kept` (None: a temporary folder), compare, say what differs. Code 1 where the
    numbers are different. Raises UserError."""
    console = make_console()
    old = _finished(path)
    config = typed_from_file(old.config, overrides)
    config.force, config.resume, config.extend = False, True, False
    validation.validate(config)
    check_data(old.path, old.environment, load_domains(config, lambda _: None))
    out = kept or Path(tempfile.mkdtemp(prefix="robustmd-reproduce-"))
    if out.resolve() == old.path.resolve().parents[3]:
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
    verdict, reasons = compare(old, new)
    differing = environment_differences(old.environment, new.environment)
    console.print(verdict)
    for line in (*reasons, *(differing or ["in the same environment"])):
        console.print(f"  {line}", soft_wrap=True)
    if kept is None and verdict == IDENTICAL:
        shutil.rmtree(out)
    else:
        console.print(f"  {new.path}", soft_wrap=True)
    return 0 if verdict != DIFFERENT else 1


def _finished(path: Path) -> Run:
    """The run in `path`, where it has finished and is sound."""
    found = collect(path)
    if len(found.runs) == 1 and found.runs[0].path == found.outputs:
        return found.runs[0]
    reason = next((p.reason for p in found.problems if p.scope == "run"), "no run directory")
    raise UserError(f"{path}: {reason}; only a finished run can be compared")


def compare(old: Run, new: Run) -> tuple[str, list[str]]:
    """How a reproduction stands to the run: a verdict, and in lines what it rests on."""
    rows, others = (_table(run, files.METRICS).drop(columns="seconds") for run in (old, new))
    same_weights = _table(old, files.WEIGHTS).equals(_table(new, files.WEIGHTS))
    if rows.equals(others) and same_weights:
        return IDENTICAL, [f"{len(rows)} measurements and every weight are the same"]
    what = ["iteration", "split", "domain", "examples"]
    if not rows[what].equals(others[what]):
        return DIFFERENT, ["they measured other things: see the two metrics.csv"]
    losses = (rows.loss - others.loss).abs() / rows.loss.abs().clip(lower=1)
    losses = losses.where(losses.notna(), math.inf)  # of what is no number
    points = (rows.accuracy.astype(float) - others.accuracy.astype(float)).abs()
    points = points.fillna(0.0)  # of numbers there is none
    allowed = (100 / rows.examples.clip(lower=1) + 1e-9).clip(lower=ACCURACY_TOLERANCE)
    start, end = rows.iteration == 0, rows.iteration == rows.iteration.max()
    reasons = [
        f"untrained, losses differ by {losses[start].max():.1e} at most "
        f"(tolerance {START_TOLERANCE:g})",
        f"after iteration {rows.iteration.max()}, losses by {losses[end].max():.1e} (tolerance "
        f"{LOSS_TOLERANCE:g}, relative above 1 nat), accuracies by {points[end].max():.2f} points "
        f"(tolerance {ACCURACY_TOLERANCE:g})",
    ]
    begin_alike = (losses[start] <= START_TOLERANCE).all()
    if begin_alike and ((losses <= LOSS_TOLERANCE) & (points <= allowed))[end].all():
        return TOLERANCE, reasons
    is_inside, words = _seed_spread(old, new)
    return SPREAD if is_inside else DIFFERENT, reasons + words


def _table(run: Run, name: str) -> pd.DataFrame:
    try:
        return read_frame(run.path / name)
    except Unreadable as reason:
        raise UserError(f"{run.path}: {reason}; run it again with force=true") from None


def _seed_spread(old: Run, new: Run) -> tuple[bool, list[str]]:
    fingerprint = old.environment.get("data_fingerprint")
    beside = collect(old.path.parent).runs
    seeds = [run for run in beside if run.environment.get("data_fingerprint") == fingerprint]
    n = len(seeds)
    if n < LEAST_SEEDS:
        return False, [
            f"the spread over seeds is not known: {n} of {LEAST_SEEDS} seeds of these settings "
            "have finished in the tree",
        ]
    factor = float(special.stdtrit(n - 1, 0.975)) * math.sqrt(1 + 1 / n)
    inside, words = True, []
    of_test = "loss" if new.are_numbers else "accuracy"
    for name, split, metric in (("training", "train", "loss"), ("test", "test", of_test)):
        value, values = new.worst(metric, split), [seed.worst(metric, split) for seed in seeds]
        mean, width = statistics.fmean(values), factor * statistics.stdev(values)
        inside &= abs(value - mean) <= width
        further = f"{mean:.4f} ± {width:.4f} ({n} seeds)"
        words.append(f"worst {name} {metric} {value:.4f}; a further seed: {further}")
    return inside, words


def environment_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """ "torch 2.13 → 2.14": what differs between two environment.json."""
    pairs = [(key, old.get(key), new.get(key)) for key in ENVIRONMENT]
    before, now = (e.get("packages") for e in (old, new))
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        pairs += [(key, before.get(key), now.get(key)) for key in dict.fromkeys((*before, *now))]
    return [f"{key} {one} → {other}" for key, one, other in pairs if one != other]
