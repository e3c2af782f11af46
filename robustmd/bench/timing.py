"""Contenders timed in turns, so that noise of the machine cancels in ratios; and whole commands."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import stats

Step = Callable[[], object]
LEVEL = 0.95
TIMEOUT = 300.0  # seconds of a command


def interleaved(
    steps: Mapping[str, Step],
    rounds: int,
    device: torch.device,
    *,
    burst: int = 1,
    warm_up: int = 3,
) -> dict[str, np.ndarray]:
    """Seconds of one iteration of each contender: name -> float64 [rounds].

    In every round each contender runs `burst` iterations; who begins changes from round to round.
    A round's times are neighbours, so that what slows the machine cancels in their ratios.

    Args:
        steps: name -> one iteration.
        rounds: >= 1.
        device: it is waited for before a clock is read.
        burst: iterations between two readings, >= 1; more than 1 where one is too short to time.
        warm_up: iterations of each before the first round, not timed.
    """
    for step in steps.values():
        for _ in range(warm_up):
            step()
    names = list(steps)
    seconds = {name: np.empty(rounds) for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            _wait_for(device)
            begun = time.perf_counter()
            for _ in range(burst):
                steps[name]()
            _wait_for(device)
            seconds[name][turn] = (time.perf_counter() - begun) / burst
    return seconds


def _wait_for(device: torch.device) -> None:
    """Returns when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def paired_ratio(numerator: ArrayLike, denominator: ArrayLike) -> dict[str, float]:
    """{"median", "low", "high", "pairs"} of numerator[i]/denominator[i] over n rounds.

    The interval runs between the ranks that hold the median with a probability of 95 % for any
    distribution (binomial); it is as wide as the data where n < 6.
    """
    ratios = np.sort(np.asarray(numerator) / np.asarray(denominator))
    n = len(ratios)
    rank = max(0, int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5)) - 1)
    low, high = float(ratios[rank]), float(ratios[n - 1 - rank])
    return {"median": float(np.median(ratios)), "low": low, "high": high, "pairs": n}


def startup_seconds(tries: int = 3) -> dict[str, float]:
    """Seconds that a user waits: {"help", "first_cold", "first_warm"}, each the fastest of some.

    The first measurement of `robustmd train data=digits_mini` is cold with an empty cache, so that
    the printed digits are drawn first. The operating system's file cache is warm in all.
    """
    with tempfile.TemporaryDirectory(prefix="robustmd-bench-") as folder:
        train = ["train", "data=digits_mini", "training.iterations=1", "force=true"]
        train += [f"paths.{name}={folder}/{name}" for name in ("cache", "outputs")]
        cold = _seconds(train, "iteration 0/")
        warm = min(_seconds(train, "iteration 0/") for _ in range(tries))
    return {
        "help": min(_seconds(["--help"]) for _ in range(tries)),
        "first_cold": cold,
        "first_warm": warm,
    }


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
