"""Seconds that a user waits: the command's help, and a first measurement, cold and warm."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIRST_MEASUREMENT = "iteration 0/"
TIMEOUT = 300.0


def help_seconds(tries: int = 5) -> float:
    """The fastest of some `robustmd --help`: processes, imports and all."""
    return min(_seconds(["--help"]) for _ in range(tries))


def first_measurement_seconds(tries: int = 3) -> tuple[float, float]:
    """`robustmd train data=digits_mini` until it prints its first measurement: (cold, warm).

    cold: with an empty cache, so that the printed digits are drawn first; warm: the fastest of
    `tries` with the cache filled. The operating system's file cache is warm in both.
    """
    with tempfile.TemporaryDirectory(prefix="robustmd-bench-") as folder:
        arguments = [
            "train",
            "data=digits_mini",
            "training.iterations=1",
            f"paths.cache={Path(folder) / 'cache'}",
            f"paths.outputs={Path(folder) / 'outputs'}",
            "force=true",
        ]
        cold = _seconds(arguments, FIRST_MEASUREMENT)
        return cold, min(_seconds(arguments, FIRST_MEASUREMENT) for _ in range(tries))


def _seconds(arguments: list[str], until: str | None = None) -> float:
    """From the start of `robustmd …` to the first line that holds `until`, or to its end."""
    command = [sys.executable, "-m", "robustmd", *arguments]
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said, elapsed = [], None
        for line in process.stdout:
            said.append(line)
            if elapsed is None and until is not None and until in line:
                elapsed = time.perf_counter() - begun
        process.wait(TIMEOUT)
        elapsed = elapsed if until is not None else time.perf_counter() - begun
    if process.returncode or elapsed is None:
        raise RuntimeError(f"robustmd {' '.join(arguments)} failed: {''.join(said)[-500:]}")
    return elapsed
