"""What `robustmd runs` says of each run: how far it is, how well it does, what differs; the removal
of those that did not finish; and the records of those that did, to pass on."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustmd.config.identity import NUMBER_CHANGING, canonical, flattened
from robustmd.errors import UserError, printable
from robustmd.metrics import worst
from robustmd.runs import files, lock, rerun
from robustmd.runs.discover import find_run_directories
from robustmd.runs.published import write_study
from robustmd.runs.reader import Records, collect, judge, root_of, status_of
from robustmd.runs.run import Run, constant_of, one_class_words, unseen_domains
from robustmd.runs.sweep_note import runs_to_begin
from robustmd.runs.untrusted import Missing, Unreadable, read_bytes, read_table

COLUMNS = ("run", "status", "iterations", "worst loss", "age", "differs in")
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
GROWING = (files.SUMMARY, files.METRICS, files.WEIGHTS, files.ENVIRONMENT)


@dataclass(frozen=True)
class Listed:
    """One run directory.

    `status`: finished, running (its lock is held), interrupted, pruned, failed, diverged, cut off
    (it says running, but nobody holds its lock) or unreadable; `message` is why, or a warning.
    `worst_loss` is max_k f_k of the last whole measurement of the training sets, of all but unseen
    domains [nats], NaN where one of them is; `age` seconds since a file changed.
    """

    path: Path
    status: str
    message: str
    done: int | None
    total: int | None
    worst_loss: float | None
    age: float
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Finished or pruned, or being trained now: nothing to run again."""
        return self.status in ("finished", "pruned", "running")


def list_runs(outputs: Path) -> list[Listed]:
    """Every run directory below `outputs`, in the order of their paths. Raises UserError: it is no
    folder."""
    root = root_of(outputs)
    found = (_listed(path, root) for path in find_run_directories(root).run_directories)
    return [one for one in found if one is not None]


def _listed(path: Path, root: Path) -> Listed | None:
    """None where the directory has been removed since it was found."""
    records = Records.of(path)
    try:
        status, message = _status(path, root, records)
        age = _age(path)
    except FileNotFoundError:
        return None
    counts = (records.summary.get(name) for name in ("iterations_done", "iterations"))
    done, total = (count if type(count) is int else None for count in counts)
    worst_loss = _worst_loss(path, records)
    return Listed(
        path, status, message, done, total, worst_loss, age, records.config, records.environment
    )


def _status(path: Path, root: Path, records: Records) -> tuple[str, str]:
    """Its status and the message."""
    summary, status = records.summary, records.summary.get("status")
    message = summary.get("message")
    try:
        holder = lock.holder(path)
    except OSError as error:
        return "unreadable", f"{files.LOCK}: {error.strerror}"
    if holder is not None:
        status, message = "running", holder
    elif not isinstance(status, str) or not records.config:
        faults = [records.faults.get(name) for name in (files.CONFIG, files.SUMMARY)]
        message = next(filter(None, faults), "summary.json names no status")
        status = "unreadable" if summary or records.config else "cut off"
    elif status == "running":
        status, message = "cut off", "its process has gone"
    elif status == "finished":
        run, problems = judge(path, root, records)
        status, message = "finished", one_class_words(constant_of(summary))
        if run is None:
            status, message = "unreadable", problems[0].reason
    return status, message if isinstance(message, str) else ""


def _worst_loss(path: Path, records: Records) -> float | None:
    domains = records.summary.get("domains")
    try:
        unseen = unseen_domains(records.config, records.summary)
        rows = read_table(path / files.METRICS)
    except Unreadable:
        return None
    losses: dict[int, dict[str, float]] = defaultdict(dict)
    for iteration, _, split, domain, loss, *_ in rows:
        if split == "train" and domain not in unseen:
            losses[iteration][domain] = loss
    whole = len(domains) - len(unseen) if isinstance(domains, list) else 1
    measured = [at for at, by_domain in losses.items() if len(by_domain) >= whole]
    return float(worst(list(losses[max(measured)].values()), "smaller")) if measured else None


def _age(path: Path) -> float:
    """Seconds since the run last wrote; 0 where a clock was set back since."""
    there = [path / name for name in GROWING if (path / name).is_file()]
    there = there or [next(one for one in (path, *path.parents) if one.exists())]  # a study's
    return max(0.0, time.time() - max(one.lstat().st_mtime for one in there))


def differences(runs: Sequence[Listed]) -> list[str]:
    """For each run what tells it from the others of its data set: "lam=0.1 width=0.5".

    The method's name and the seed are in the path and left out. A method's keys are compared with
    those of runs of that method.
    """
    flat = [_settings(run.config) for run in runs]

    def scope(one: Mapping[str, str], key: str) -> tuple[str, ...]:
        method = (one.get("method.name", ""),) if key.startswith("method.") else ()
        return one.get("data.name", ""), *method, key

    values: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in flat:
        for key, value in one.items():
            values[scope(one, key)].add(value)
    return [
        " ".join(
            f"{key.rpartition('.')[2]}={value[:8] if key == 'data.fingerprint' else value}"
            for key, value in one.items()
            if not key.endswith(".name") and len(values[scope(one, key)]) > 1
        )
        for one in flat
    ]


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    found = {
        key: f"{value:g}" if isinstance(value, float) else str(value)
        for group in NUMBER_CHANGING
        for key, value in flattened(canonical(config.get(group)), group)
    }
    runtime = config.get("runtime")
    if isinstance(runtime, Mapping) and "precision" in runtime:
        found["runtime.precision"] = str(runtime["precision"])
    return found


def remove(path: Path, root: Path) -> None:
    """Remove an unfinished run's directory, and the folders above it, below `root` (resolved), that
    it leaves empty. Raises UserError: it has finished, is being trained, holds what no run writes,
    or is reached by a link; OSError.
    """
    if path.resolve() != path or not path.is_relative_to(root) or path == root:
        raise UserError(f"{path}: is reached by a symbolic link; left as it is")
    names = [child.name for child in path.iterdir()]
    foreign = [n for n in names if n not in files.ALL and not re.fullmatch(files.LEFTOVER, n)]
    if not path.name.startswith("seed=") or foreign:
        what = f"holds {foreign[0]}, which" if foreign else "has a name that"
        raise UserError(f"{path}: {what} no run of ours has; left as it is")
    with lock.held(path):
        try:
            has_finished = status_of(path) == "finished"
        except Unreadable:
            has_finished = True
        if has_finished:
            raise UserError(f"{path}: has finished, or may have; left as it is")
        shutil.rmtree(path)  # follows no symbolic link
    for folder in path.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()


def publish_records(outputs: Path, to: Path) -> tuple[int, int]:
    """Write the records of every finished run below `outputs` to `to`, without the machine's
    folders, as published.py has them. Returns how many runs, and how many bytes. Raises UserError:
    no finished run is there; OSError."""
    found = collect(outputs)
    if not found.runs:
        raise UserError(f"--publish {to}: {outputs} has no finished run; name a folder with some")
    runs = ((run.place, _placeless(run), _csv_files(run.path)) for run in found.runs)
    return len(found.runs), write_study(to, runs)


def _placeless(run: Run) -> dict[str, Mapping[str, Any]]:
    """Its records without the folders of the machine that trained, which change no number."""
    environment = {key: value for key, value in run.environment.items() if key != "folder"}
    typed = environment.get("overrides") or []
    environment["overrides"] = [one for one in typed if not one.startswith("paths.")]
    config = {key: value for key, value in run.config.items() if key != "paths"}
    return {files.CONFIG: config, files.SUMMARY: run.summary, files.ENVIRONMENT: environment}


def _csv_files(run: Path) -> dict[str, bytes]:
    found = {}
    for name in files.COLUMNS:
        with suppress(Missing):  # measures.csv is there where metrics were asked for
            found[name] = read_bytes(run / name)
    return found


def runs(
    outputs: Path, failed: bool, rerun_command: bool, clean: bool, publish: Path | None, yes: bool
) -> int:
    """`robustmd runs`: list, print commands, clean or publish. Returns 0, or 1 where a command is
    not known or a run could not be removed. Raises UserError."""
    if publish is not None:
        count, size = publish_records(outputs, publish)
        _say(f"{publish}: records of {count} finished runs, {size / 1e6:.2f} MB")
        return 0
    every = list_runs(outputs)
    unfinished = [one for one in every if not one.is_over]
    if clean:
        return _clean(unfinished, outputs.resolve(), yes)
    shown = unfinished if failed else every
    if rerun_command:
        return _print_commands(shown)
    _print_list(shown, outputs.resolve())
    counts = Counter(one.status for one in every)
    words = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    _say(f"{len(every)} runs: {words}" if every else f"{outputs}: no runs in it")
    for line in runs_to_begin(outputs):
        _say(line)
    return 0


def _print_list(runs: Sequence[Listed], root: Path) -> None:
    if not runs:
        return
    rows: list[tuple[str, ...]] = [COLUMNS]
    for found, difference in zip(runs, differences(runs), strict=True):
        done = "" if found.done is None else f"{found.done}/{found.total}"
        loss = "" if found.worst_loss is None else f"{found.worst_loss:.4f}"
        place = str(found.path.relative_to(root)) if found.path != root else "."
        shown = (place, found.status, done, loss, _duration(found.age), difference)
        rows.append(tuple(map(printable, shown)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS) - 1)]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        _say("  ".join([*cells, row[-1]]).rstrip())
        one = runs[number - 1]
        if number > 0 and one.message:
            _say(f"    {one.message}")


def _duration(seconds: float) -> str:
    size, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    return f"{int(seconds / size)} {unit}"


def _print_commands(runs: Sequence[Listed]) -> int:
    unknown = 0
    for one in runs:
        try:
            arguments = rerun.overrides(
                one.config, one.environment, outputs=rerun.tree_of(one.path)
            )
        except (Unreadable, IndexError) as reason:
            unknown += 1
            _complain(f"{one.path}: left out: {reason if one.config else one.message}")
        else:
            _say(rerun.command(arguments))
    return 1 if unknown else 0


def _clean(runs: Sequence[Listed], root: Path, sure: bool) -> int:
    if not runs:
        _say("nothing to remove: no unfinished runs")
        return 0
    _print_list(runs, root)
    if not sure and not _agreed(len(runs)):
        _say("nothing removed")
        return 0
    failed = 0
    for one in runs:
        try:
            remove(one.path, root)
        except (UserError, OSError) as error:
            failed += 1
            _complain(str(error))
    _say(f"{len(runs) - failed} runs removed")
    return 1 if failed else 0


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise UserError("--clean asks before it removes; where nobody can answer, add --yes")
    return input(f"Remove these {count} runs for good? [y/N] ").strip().lower() in ("y", "yes")


def _say(line: str) -> None:
    print(printable(line))  # noqa: T201


def _complain(line: str) -> None:
    print(f"robustmd: {printable(line)}", file=sys.stderr)  # noqa: T201
