"""Reads run directories back: `collect(outputs)` finds every run, judges it, and never gives up.

A report may use the numbers of `Collection.runs` only; whatever else was found is a `Problem` with
its reason.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from robustmd.errors import UserError, listed
from robustmd.runs import files
from robustmd.runs.discover import find_run_directories
from robustmd.runs.run import (
    CROSS_ENTROPY,
    Collection,
    Measurement,
    Problem,
    Run,
    Series,
    history_of,
    is_sound,
    unseen_domains,
)
from robustmd.runs.untrusted import MAX_INTEGER, Missing, Unreadable, read_record, read_table

STATUSES = ("running", "finished", "interrupted", "pruned", "failed", "diverged")
REQUIRED_SPLITS = ("train", "test")

Final = Mapping[str, Mapping[str, Measurement]]


@dataclass(frozen=True)
class Records:
    """The three records of a run, each empty where `faults` says why it cannot be read."""

    config: dict[str, Any]
    summary: dict[str, Any]
    environment: dict[str, Any]
    faults: Mapping[str, str]

    @classmethod
    def of(cls, path: Path) -> Records:
        """Those of the run in `path`."""
        found: dict[str, dict[str, Any]] = {}
        faults = {}
        for name in (files.CONFIG, files.SUMMARY, files.ENVIRONMENT):
            try:
                found[name] = read_record(path / name)
            except Unreadable as reason:
                found[name], faults[name] = {}, str(reason)
        config, summary, environment = found.values()
        return cls(config, summary, environment, faults)


def collect(outputs: Path) -> Collection:
    """Reads every run below `outputs`; time is linear in the number of runs.

    `runs` holds those that are finished and whose files can be read.
    Partial, foreign and corrupt directories become problems, never an exception. Symbolic links out
    of the tree are not followed. Raises `UserError` only where `outputs` is no folder.
    """
    root = root_of(outputs)
    found = find_run_directories(root)
    problems = [Problem(path, reason, "directory") for path, reason in found.others]
    runs: list[Run] = []
    for path in found.run_directories:
        run, said = judge(path, root)
        problems += said
        if run is not None:
            runs.append(run)
    return Collection(root, tuple(runs), tuple(sorted(problems, key=lambda p: p.path)))


def root_of(outputs: Path) -> Path:
    """The outputs folder, resolved. Raises UserError where there is none."""
    if not outputs.is_dir():
        raise UserError(
            f"{outputs}: no such folder; name the one that holds your runs, or make some with "
            "`robustmd train -m method=even,opt seed=0,1`"
        )
    return outputs.resolve()


def judge(
    path: Path, root: Path, records: Records | None = None
) -> tuple[Run | None, list[Problem]]:
    """The run in `path` if its numbers may be used, and all there is to say about it."""
    records = records or Records.of(path)
    run: Run | None = None
    try:
        run = _unmeasured(path, root, records)
        if run.status != "finished":
            raise Unreadable(_unfinished(run))
        rows = [Measurement(*row) for row in read_table(path / files.METRICS)]
        final = final_measurement(rows, run)
    except Unreadable as reason:
        return None, [Problem(path, str(reason), "run", run)]
    history = history_of(rows, run.domains)
    beside = history_of(rows, run.unseen)
    run = replace(run, final=final, history=history, unseen_history=beside)
    problems = [Problem(path, remark, "remark", run) for remark in _remarks(run, records)]
    said = dict.fromkeys((*gaps(history), *gaps(beside)))
    return run, problems + [Problem(path, gap, "measurement", run) for gap in said]


def validated_so_far(path: Path, domains: Sequence[str]) -> dict[int, float]:
    """iteration -> the least worst-case validation loss over these domains until then, of the run
    in `path`, over or not; empty without a validation split. Raises `Unreadable`."""
    rows = (Measurement(*row) for row in read_table(path / files.METRICS))
    measured = history_of(rows, domains).get("val")
    if measured is None:
        return {}
    so_far = np.minimum.accumulate(measured.worst("loss"))
    return dict(zip(measured.iterations.tolist(), so_far.tolist(), strict=True))


def status_of(path: Path) -> str | None:
    """What the run in `path` says of itself; None where it was ended before it said anything.

    Raises `Unreadable` where that is not known: something is damaged.
    """
    try:
        status = read_record(path / files.SUMMARY).get("status")
    except Missing:
        if os.path.lexists(path / files.FINAL_MODEL):
            raise
        return None
    if status not in STATUSES:
        raise Unreadable("summary.json names no status")
    return str(status)


def _unmeasured(path: Path, root: Path, records: Records) -> Run:
    """The run without its measurements. Raises `Unreadable`."""
    for name in (files.CONFIG, files.SUMMARY):
        if name in records.faults:
            raise Unreadable(records.faults[name])
    config, summary = records.config, records.summary
    data, method, seed = _name(config, "data"), _name(config, "method"), config.get("seed")
    if not is_integer(seed):
        raise Unreadable("config.yaml names no whole number as seed")
    for key, value in (("data", data), ("seed", seed)):
        if summary.get(key) != value:
            raise Unreadable(f"config.yaml says {key}={value}, summary.json {summary.get(key)!r}")
    if not isinstance(summary.get("status"), str):
        raise Unreadable("summary.json names no status")
    measured = _domains(summary)
    return Run(
        path=path,
        root=root,
        config=config,
        summary=summary,
        environment=records.environment,
        data=data,
        method=method,
        seed=seed,
        status=summary["status"],
        measured=measured,
        unseen=_unseen(config, summary, measured),
    )


def _remarks(run: Run, records: Records) -> list[str]:
    """What is to be said of a run and leaves nothing out."""
    remarks = []
    if files.ENVIRONMENT in records.faults:
        fault = records.faults[files.ENVIRONMENT]
        remarks.append(f"{fault}: which bytes it was trained on is not known")
    named = run.summary.get("method")
    if named != run.method:
        words = f"{named!r}, config.yaml {run.method!r}: the latter is used"
        remarks.append(f"summary.json calls the method {words}")
    return remarks


def _name(config: dict[str, Any], group: str) -> str:
    chosen = config.get(group)
    name = chosen.get("name") if isinstance(chosen, dict) else None
    if not isinstance(name, str) or not name:
        raise Unreadable(f"config.yaml has no {group}.name")
    return name


def _domains(summary: dict[str, Any]) -> tuple[str, ...]:
    names = summary.get("domains")
    sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not sound or not names or len(set(names)) != len(names):
        raise Unreadable("summary.json has no list of distinct domains")
    return tuple(names)


def _unseen(
    config: dict[str, Any], summary: dict[str, Any], measured: tuple[str, ...]
) -> tuple[str, ...]:
    unseen = unseen_domains(config, summary)
    unknown = [name for name in unseen if name not in measured]
    if unknown:
        raise Unreadable(f"names {unknown[0]!r} as unseen, no domain of summary.json")
    if len(set(unseen)) >= len(measured):
        raise Unreadable("names every domain as unseen")
    return tuple(name for name in measured if name in unseen)


def _unfinished(run: Run) -> str:
    done, total = run.summary.get("iterations_done"), run.summary.get("iterations")
    progress = f" after {done} of {total} iterations" if is_integer(done) else ""
    message = run.summary.get("message")
    return f"{run.status}{progress}" + (f": {message}" if isinstance(message, str) else "")


def is_integer(value: object) -> TypeGuard[int]:
    """A whole number that is no boolean and fits where numbers are kept."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER


def final_measurement(rows: Sequence[Measurement], run: Run) -> Final:
    """{split: {domain: last row}} at iteration T = summary.json's `iterations`, or where it stopped
    early.

    Raises `Unreadable` where metrics.csv measures what is not this run's, or has not one sound row
    for each domain of train and test at T.
    """
    stopped = run.summary.get("stopped_early") is True
    total = run.summary.get("iterations_done" if stopped else "iterations")
    if not is_integer(total):
        raise Unreadable("summary.json names no number of iterations")
    found: dict[str, dict[str, list[Measurement]]] = {}
    known = frozenset(run.measured)
    for row in rows:
        if row.domain not in known or row.iteration > total:
            where = f"{row.domain!r} at iteration {row.iteration}"
            raise Unreadable(f"metrics.csv measures {where}, which summary.json does not know")
        if row.iteration == total:
            found.setdefault(row.split, {}).setdefault(row.domain, []).append(row)
    for split in dict.fromkeys((*REQUIRED_SPLITS, *found)):
        by_domain = found.setdefault(split, {})
        lacking = [domain for domain in run.measured if domain not in by_domain]
        if lacking:
            raise Unreadable(
                f"metrics.csv lacks the final measurement (iteration {total}) of {split} on "
                f"{listed(lacking)}"
            )
        unsound = [name for name, there in by_domain.items() if not _is_one_sound(there, run)]
        if unsound:
            raise Unreadable(
                f"metrics.csv: the final measurement of {split} on {listed(unsound)} is twice "
                "there, or a loss or an accuracy that cannot be"
            )
    return {split: {name: ones[0] for name, ones in of.items()} for split, of in found.items()}


def _is_one_sound(rows: Sequence[Measurement], run: Run) -> bool:
    if len(rows) != 1 or not is_sound(rows[0]):
        return False
    has_its_accuracy = (rows[0].accuracy is None) == run.are_numbers
    return has_its_accuracy and (rows[0].loss >= 0 or run.loss_name != CROSS_ENTROPY)


def gaps(history: Mapping[str, Series]) -> list[str]:
    """What to say of measurements before the last that are not whole (see `Series`): one
    line for each split, however many there are."""
    found = []
    for split, series in history.items():
        first, *others = series.dropped or (None,)
        if first is not None:
            more = f" (the first of {len(others) + 1:,} such iterations)" if others else ""
            found.append(
                f"metrics.csv: {split} at iteration {first}{more} has not one sound row for each "
                "domain; left out of means and curves"
            )
    return found
