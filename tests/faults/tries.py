"""One try of a run in a process of its own, which may be killed, and a look at what it left."""

import io
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch._inductor  # what the first optimizer would load, in every process anew
from faults.faulty_os import FaultyOS
from rich.console import Console
from tiny import TINY, composed_into, rows

from robustmd import cli
from robustmd.config import settings
from robustmd.runs import checkpoints, files
from robustmd.training import run as run_module

SETTINGS = (
    *TINY,
    "training.iterations=30",
    "evaluation.every=6",
    "evaluation.examples=40",
    "logging.every=4",
    "checkpoint.every=3",
)


@dataclass(frozen=True)
class Case:
    """A run to be disturbed: its settings and where it and its undisturbed twin are written."""

    overrides: tuple[str, ...]
    outputs: Path

    def directory(self) -> Path | None:
        found = list(self.outputs.glob("*/*/*/seed=*"))
        return found[0] if found else None


@dataclass(frozen=True)
class Try:
    """How a process ended: its exit code (negative: the signal), what it said, its seconds."""

    code: int
    error: str
    seconds: float

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


def attempt(case: Case, faulty: FaultyOS, kill_after: float | None = None) -> Try:
    """Run the case in a forked process, with faults; kill it after so many seconds.

    torch is loaded once, before: a process is at work within hundredths of a second.
    """
    log = case.outputs.with_suffix(".log")
    log.write_text("")  # a process may be killed before it has begun
    config = composed_into(case.outputs, *SETTINGS, *case.overrides)
    begun = time.perf_counter()
    process = os.fork()
    if process == 0:
        os._exit(_child(case, config, faulty, log))
    if kill_after is not None:
        _wait_and_kill(process, begun + kill_after)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    return Try(code, log.read_text(), time.perf_counter() - begun)


def _child(case: Case, config: settings.Config, faulty: FaultyOS, log: Path) -> int:
    with log.open("w") as stream:
        os.dup2(stream.fileno(), 2)
        sys.stderr = stream
        files.os = faulty  # type: ignore[assignment]

        def go() -> int:
            outcome = run_module.run(config, Console(file=io.StringIO()))
            counts = case.outputs.with_suffix(".counts")
            counts.write_text(json.dumps(faulty.counts))
            return outcome.exit_code

        return cli.guarded(go)


def _wait_and_kill(process: int, until: float) -> None:
    while time.perf_counter() < until:
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)


def copied(run: Path, into: Path) -> Path:
    """The run's directory in a copy of its outputs tree, which is a new `into/outputs`."""
    outputs = run.parents[3]
    shutil.rmtree(into / "outputs", ignore_errors=True)
    shutil.copytree(outputs, into / "outputs", symlinks=True)
    return into / "outputs" / run.relative_to(outputs)


def notes_of(run: Path) -> list[str]:
    return json.loads((run / files.SUMMARY).read_text())["notes"]


def with_keys(path: Path, **keys: object) -> None:
    """Changes keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def differences(run: Path, twin: Path) -> list[str]:
    """What a finished run has otherwise than its undisturbed twin; seconds and notes apart."""
    tables = [name for name in files.COLUMNS if (twin / name).exists()]
    found = [name for name in tables if rows(run, name) != rows(twin, name)]
    ours, theirs = (json.loads((path / files.SUMMARY).read_text()) for path in (run, twin))
    for summary in (ours, theirs):
        del summary["seconds"], summary["notes"]
    found += [f"summary.{key}" for key in theirs if ours.get(key) != theirs[key]]
    for name in (files.FINAL_MODEL, files.BEST_MODEL):
        if (twin / name).exists():
            one, other = (checkpoints.load_model(path, name) for path in (run, twin))
            if one.keys() != other.keys() or not all(torch.equal(one[k], other[k]) for k in one):
                found.append(name)
    with (
        np.load(run / files.PREDICTIONS, allow_pickle=False) as one,
        np.load(twin / files.PREDICTIONS, allow_pickle=False) as other,
    ):
        if not all(np.array_equal(one[key], other[key]) for key in other.files):
            found.append(files.PREDICTIONS)
    # Nothing is left of the tries: the same files, and no half-written ones.
    names = [sorted(p.name for p in path.rglob("*")) for path in (run, twin)]
    if names[0] != names[1]:
        found.append(f"files {sorted(set(names[0]) ^ set(names[1]))}")
    return found
