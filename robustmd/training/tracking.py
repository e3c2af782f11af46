"""What trackers are told of a run: what its files hold, while it is under way or afterwards.

The directory stays the source of truth: nothing is told that is not on the disk. While a run is
under way each tracker has a thread, so that one that fails or hangs costs a line.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from robustmd.config.identity import flattened
from robustmd.config.settings import Config
from robustmd.metrics import MEASURED, worst
from robustmd.registry import METRICS
from robustmd.runs import files
from robustmd.runs.reader import judge
from robustmd.runs.run import unseen_domains
from robustmd.runs.untrusted import Missing, read_record, read_table
from robustmd.runs.writer import RunDirectory
from robustmd.trackers.tracker import TRACKERS, Step, TrackedRun

WAIT = 30.0  # seconds that the end of a run waits for its trackers


def described(directory: RunDirectory) -> TrackedRun:
    """A run as trackers name it. Its id is made of tracking.json, which is written if need be, and
    of its name: the file of a stranger's run leads to no other run of a tracker's.

    Raises:
        Unreadable: a record is damaged.
        OSError: tracking.json cannot be written.
    """
    config = read_record(directory.path / files.CONFIG)
    try:
        token = read_record(directory.path / files.TRACKING).get("token")
    except Missing:
        token = secrets.token_hex(8)
        directory.write_record(files.TRACKING, {"token": token})
    path = directory.path.absolute()
    name = "/".join(path.parts[-4:])
    named = (directory.record(files.ENVIRONMENT) or {}).get("experiment")
    return TrackedRun(
        id=hashlib.sha256(f"{token} {name}".encode()).hexdigest()[:16],
        name=name,
        experiment=str(named or config["data"]["name"]),
        config=dict(pair for key, value in config.items() for pair in flattened(value, key)),
        outputs=path.parents[3],
    )


def numbers(name: str, rows: Iterable[Sequence[Any]], unseen: Sequence[str]) -> list[Step]:
    """Rows of a file that grows, by iteration, as {tag: number}, the finite ones.

    Tags: `train/a/loss`, `train/a/accuracy` of each split and domain, `worst/train/loss`, …, with
    `unseen/` before those of unseen domains; `weight/a`, `batch_loss/a`.
    """
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    of_all: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for iteration, *row in rows:
        if name == files.WEIGHTS:
            domain, weight, loss = row
            found[iteration] |= {f"weight/{domain}": weight, f"batch_loss/{domain}": loss}
            continue
        if name == files.MEASURES:
            split, domain, metric, value = row
            measured = {metric: value}
        else:
            _, split, domain, *values, _ = row
            measured = dict(zip(MEASURED, values, strict=True))
        apart = "unseen/" if domain in unseen else ""
        for metric, value in measured.items():
            found[iteration][f"{apart}{split}/{domain}/{metric}"] = value
            if name == files.METRICS and value is not None:
                of_all[iteration, f"{apart}worst/{split}", metric].append(value)
    for (iteration, place, metric), values in of_all.items():
        found[iteration][f"{place}/{metric}"] = float(worst(values, METRICS[metric].better))
    return [
        (at, {tag: x for tag, x in of_one.items() if x is not None and math.isfinite(x)})
        for at, of_one in found.items()
    ]


def all_numbers(directory: RunDirectory) -> list[Step]:
    """Those of all its files, in ascending order. Raises Unreadable."""
    unseen, merged = _unseen(directory), defaultdict[int, dict[str, float]](dict)
    for name in files.COLUMNS:
        if name != files.MEASURES or (directory.path / name).exists():
            for iteration, found in numbers(name, read_table(directory.path / name), unseen):
                merged[iteration] |= found
    return sorted(merged.items())


def _unseen(directory: RunDirectory) -> tuple[str, ...]:
    summary = directory.record(files.SUMMARY) or {}
    return unseen_domains(directory.record(files.CONFIG) or {}, summary)


def ending(directory: RunDirectory, *, model: bool) -> tuple[str, Any, dict[str, Path]]:
    """The arguments of a tracker's `end`."""
    from robustmd.trained_run import Run  # noqa: PLC0415 - which imports what imports this

    record, _ = judge(directory.path, directory.path)
    status = str((directory.record(files.SUMMARY) or {}).get("status"))
    names = (files.EXAMPLES, files.FINAL_MODEL) if model else (files.EXAMPLES,)
    there = [directory.path / name for name in names if (directory.path / name).exists()]
    for path in there:
        files.reading(path).close()  # refuses a link
    return status, Run(record).final if record else None, {path.name: path for path in there}


def send(directory: RunDirectory, name: str, *, model: bool) -> None:
    """Tell a tracker of a finished run. Raises whatever goes wrong."""
    tracker = TRACKERS[name](described(directory))
    tracker.log(all_numbers(directory))
    tracker.end(*ending(directory, model=model))


class Following:
    """The trackers of a run under way. Within a `with`, what is added to its files is told to them.

    `say` shows and logs a line.
    """

    def __init__(self, directory: RunDirectory, config: Config, say: Callable[[str], None]) -> None:
        self._directory, self._say, self._model = directory, say, config.tracking_model
        self._queues: dict[str, SimpleQueue[Any]] = {
            name: SimpleQueue() for name in config.tracking
        }
        self._threads: dict[str, Thread] = {}
        self._faults: dict[str, BaseException] = {}

    def __enter__(self) -> None:
        self._directory.appended = self._appended if self._queues else None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._directory.appended = None
        if not self._threads:
            return
        self._put(lambda: ([], ending(self._directory, model=self._model)))
        waits = kind is None or issubclass(kind, Exception)  # nobody waits at a second Ctrl-C
        until = time.monotonic() + (WAIT if waits else 0.0)
        for name in self._queues:
            self._threads[name].join(max(0.0, until - time.monotonic()))
            if self._threads[name].is_alive():
                self._faults[name] = TimeoutError(f"no answer within {WAIT:.0f} s")
        self._warn()

    def _appended(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """At first all that is in the files is sent: a run that goes on has more there."""
        begins = not self._threads
        self._put(lambda: (self._begin() if begins else numbers(name, rows, self._unseen), None))

    def _begin(self) -> list[Step]:
        self._unseen, run = _unseen(self._directory), described(self._directory)
        found = all_numbers(self._directory)
        for name in self._queues:
            self._threads[name] = Thread(target=self._follow, args=(name, run), daemon=True)
            self._threads[name].start()
        return found

    def _follow(self, name: str, run: TrackedRun) -> None:
        """What a thread does: tell its tracker all that waits for it, at once."""
        waiting = self._queues[name]
        try:
            tracker, end = TRACKERS[name](run), None
            while end is None:
                messages = [waiting.get()]
                while not waiting.empty():
                    messages.append(waiting.get())
                tracker.log([step for steps, _ in messages for step in steps])
                end = messages[-1][1]
            tracker.end(*end)
        except BaseException as error:  # a SystemExit is one too
            self._faults[name] = error

    def _put(self, made: Callable[[], Any]) -> None:
        """A message for each tracker; what goes wrong in making it is a fault of theirs."""
        try:
            message = made() if self._queues else None
            for waiting in self._queues.values():
                waiting.put(message)
        except Exception as error:
            self._faults |= dict.fromkeys(self._queues, error)
        self._warn()

    def _warn(self) -> None:
        """Tell the user once of a tracker at fault, and that tracker nothing more."""
        for name in [name for name in self._queues if name in self._faults]:
            del self._queues[name]
            error = self._faults[name]
            words = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            self._say(
                f"warning: tracking=[{name}] is off for this run ({words}); once it has finished "
                f"`robustmd track {self._directory.path} --to {name}` sends it"
            )
