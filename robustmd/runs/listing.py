"""What `robustmd runs` says of each run: how far it is, how well it does, what differs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robustmd.config.identity import canonical
from robustmd.errors import UserError
from robustmd.runs import files, lock
from robustmd.runs.discovery import find_run_directories
from robustmd.runs.run import constant_of, one_class_words, unseen_domains
from robustmd.runs.untrusted import Unreadable, read_record, read_table

COMPARED = ("data", "backbone", "method", "training", "evaluation")
DONE = ("finished", "running")
GROWING = (files.SUMMARY, files.METRICS, files.WEIGHTS, files.ENVIRONMENT)


@dataclass(frozen=True)
class Listed:
    """One run directory.

    `status`: finished, running (its lock is held), interrupted, failed, diverged, cut off (it says
    running, but nobody holds its lock) or unreadable; `message` is why, or a warning. `worst_loss`
    is max_k f_k of the last whole measurement of the training sets, of all but unseen domains
    [nats], NaN where one of them is; `age` seconds since a file changed.
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
        """Finished, or being trained now: nothing to run again."""
        return self.status in DONE


def list_runs(outputs: Path) -> list[Listed]:
    """Every run directory below `outputs`, in the order of their paths; none is changed.

    Raises:
        UserError: `outputs` is no folder.
    """
    if not outputs.is_dir():
        raise UserError(f"{outputs}: no such folder; name the one that holds your runs")
    root = outputs.resolve()
    found = map(_listed, find_run_directories(root).run_directories)
    return [one for one in found if one is not None]


def _listed(path: Path) -> Listed | None:
    """None where the directory has been removed since it was found."""
    config, summary, environment, message = _facts(path)
    status = summary.get("status")
    try:
        holder, age = lock.holder(path / files.LOCK), _age(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        holder, age, status = None, 0.0, None
        message = f"{files.LOCK}: {error.strerror}"
    if holder is not None:
        status, message = "running", holder
    elif not isinstance(status, str) or not config:
        status = "unreadable" if summary or config else "cut off"
    elif status == "running":
        status, message = "cut off", "its process has gone"
    elif status == "finished":
        message = one_class_words(constant_of(summary))
    elif isinstance(summary.get("message"), str):
        message = summary["message"]
    worst_loss, damage = _worst_loss(path, config, summary)
    if status == "finished" and damage:
        status, message = "unreadable", damage
    return Listed(
        path,
        status,
        message,
        _count(summary, "iterations_done"),
        _count(summary, "iterations"),
        worst_loss,
        age,
        config,
        environment,
    )


def _facts(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
    """config, summary, environment, and the reason where one of the first two is unreadable."""
    found: list[dict[str, Any]] = []
    message = ""
    for name in (files.ENVIRONMENT, files.SUMMARY, files.CONFIG):
        try:
            found.append(read_record(path / name))
        except Unreadable as reason:
            found.append({})
            message = str(reason)
    environment, summary, config = found
    return config, summary, environment, message


def _count(summary: Mapping[str, Any], name: str) -> int | None:
    value = summary.get(name)
    return value if type(value) is int else None


def _worst_loss(
    path: Path, config: Mapping[str, Any], summary: Mapping[str, Any]
) -> tuple[float | None, str]:
    """The loss, and the reason where metrics.csv has none to give because it is unreadable."""
    domains = summary.get("domains")
    try:
        unseen = unseen_domains(config, summary)
        rows = read_table(path / files.METRICS)
    except Unreadable as reason:
        return None, str(reason)
    losses: dict[int, dict[str, float]] = defaultdict(dict)
    for iteration, _, split, domain, loss, *_ in rows:
        if split == "train" and domain not in unseen:
            losses[iteration][domain] = loss
    whole = len(domains) - len(unseen) if isinstance(domains, list) else 1
    measured = [at for at, by_domain in losses.items() if len(by_domain) >= whole]
    largest = float(np.max(list(losses[max(measured)].values()))) if measured else None
    return largest, ""


def _age(path: Path) -> float:
    """Seconds since the run last wrote; 0 where a clock was set back since."""
    times = [0.0]
    for name in GROWING:
        try:
            times.append((path / name).lstat().st_mtime)
        except OSError:
            continue
    newest = max(times) or path.lstat().st_mtime
    return max(0.0, time.time() - newest)


def differences(runs: Sequence[Listed]) -> list[str]:
    """For each run what tells it from the others of its data set: "lam=0.1 width=0.5".

    The method's name and the seed are in the path and left out.
    """
    flat = [_flat(run.config) for run in runs]
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in flat:
        for key, value in one.items():
            values[_scope(one, key), key].add(value)
    return [
        " ".join(
            f"{key.rpartition('.')[2]}={value}"
            for key, value in one.items()
            if not key.endswith(".name") and len(values[_scope(one, key), key]) > 1
        )
        for one in flat
    ]


def _scope(flat: Mapping[str, str], key: str) -> str:
    """Whom a run is compared with: runs on its data, in a method's key those of its method."""
    data, group = flat.get("data.name", ""), key.partition(".")[0]
    return f"{data} {flat.get('method.name', '')}" if group == "method" else data


def _flat(config: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for group in COMPARED:
        for key, value in _leaves(config.get(group), group):
            found[key] = _shown(value)
    runtime = config.get("runtime")
    if isinstance(runtime, Mapping) and "precision" in runtime:
        found["runtime.precision"] = str(runtime["precision"])
    return found


def _leaves(value: object, key: str) -> Iterable[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}")
    else:
        yield key, canonical(value)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
