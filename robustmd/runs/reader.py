"""Reads run directories back: `collect(outputs)` finds every run, judges it, and never gives up.

A report may use the numbers of `Collection.runs` only; whatever else was found is a `Problem` with
its reason.
"""

import os
from pathlib import Path
from typing import Any

from robustmd.errors import UserError
from robustmd.runs import files
from robustmd.runs.discovery import find_run_directories
from robustmd.runs.run import (
    METRICS_COLUMNS,
    Collection,
    Measurement,
    Problem,
    Run,
    unseen_domains,
)
from robustmd.runs.series import history_of
from robustmd.runs.soundness import (
    compare_with_summary,
    final_measurement,
    gaps,
    is_integer,
)
from robustmd.runs.untrusted import Missing, Unreadable, read_json, read_table, read_yaml

STATUSES = ("running", "finished", "interrupted", "failed", "diverged")

__all__ = ["Collection", "Measurement", "Problem", "Run", "collect", "judge", "status_of"]


def collect(outputs: Path) -> Collection:
    """Reads every run below `outputs`; time is linear in the number of runs.

    `runs` holds those that are finished and whose metrics.csv agrees with their summary.json.
    Partial, foreign and corrupt directories become problems, never an exception. Symbolic links out
    of the tree are not followed. Raises `UserError` only where `outputs` is no folder.
    """
    if not outputs.is_dir():
        raise UserError(
            f"{outputs}: no such folder; name the one that holds your runs, or make some with "
            "`robustmd train -m method=even,opt seed=0,1`"
        )
    root = outputs.resolve()
    found = find_run_directories(root)
    problems = [Problem(path, reason, "directory") for path, reason in found.others]
    runs: list[Run] = []
    for path in found.run_directories:
        run, said = judge(path, root)
        problems += said
        if run is not None:
            runs.append(run)
    return Collection(root, tuple(runs), tuple(sorted(problems, key=lambda p: p.path)))


def judge(path: Path, root: Path) -> tuple[Run | None, list[Problem]]:
    """The run in `path` if its numbers may be used, and all there is to say about it."""
    facts: dict[str, Any] = {}
    unmeasured: Run | None = None
    try:
        facts, remarks = _read_facts(path, root)
        unmeasured = Run(**facts)
        if unmeasured.status != "finished":
            raise Unreadable(_unfinished(unmeasured))
        table = read_table(path / files.METRICS, METRICS_COLUMNS)
        rows = [Measurement(*row) for row in table]
        final = final_measurement(rows, unmeasured)
        compare_with_summary(final, unmeasured)
    except Unreadable as reason:
        return None, [Problem(path, str(reason), "run", unmeasured)]
    history = history_of(rows, unmeasured.domains)
    beside = history_of(rows, unmeasured.unseen) if unmeasured.unseen else {}
    run = Run(**facts, final=final, history=history, unseen_history=beside)
    problems = [Problem(path, remark, "remark", run) for remark in remarks]
    said = dict.fromkeys((*gaps(history), *gaps(beside)))
    problems += [Problem(path, gap, "measurement", run) for gap in said]
    return run, problems


def status_of(path: Path) -> str | None:
    """What the run in `path` says of itself; None where it was ended before it said anything.

    Raises `Unreadable` where that is not known: something is damaged.
    """
    try:
        status = read_json(path / files.SUMMARY).get("status")
    except Missing:
        if os.path.lexists(path / files.FINAL_MODEL):
            raise
        return None
    if status not in STATUSES:
        raise Unreadable("summary.json names no status")
    return str(status)


def _read_facts(path: Path, root: Path) -> tuple[dict[str, Any], list[str]]:
    """Arguments of `Run` but for the measurements, and remarks that leave nothing out."""
    config = read_yaml(path / files.CONFIG)
    summary = read_json(path / files.SUMMARY)
    remarks: list[str] = []
    try:
        environment = read_json(path / files.ENVIRONMENT)
    except Unreadable as reason:
        environment = {}
        remarks.append(f"{reason}: which bytes it was trained on is not known")
    data, method, seed = _name(config, "data"), _name(config, "method"), config.get("seed")
    if not is_integer(seed):
        raise Unreadable("config.yaml names no whole number as seed")
    for key, value in (("data", data), ("seed", seed)):
        if summary.get(key) != value:
            raise Unreadable(f"config.yaml says {key}={value}, summary.json {summary.get(key)!r}")
    if summary.get("method") != method:
        named = f"{summary.get('method')!r}, config.yaml {method!r}: the latter is used"
        remarks.append(f"summary.json calls the method {named}")
    if not isinstance(summary.get("status"), str):
        raise Unreadable("summary.json names no status")
    facts = {
        "path": path,
        "root": root,
        "config": config,
        "summary": summary,
        "environment": environment,
        "data": data,
        "method": method,
        "seed": seed,
        "status": summary["status"],
        "measured": _domains(summary),
    }
    facts["unseen"] = _unseen(config, summary, facts["measured"])
    return facts, remarks


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
