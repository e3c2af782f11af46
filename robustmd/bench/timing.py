"""Contenders timed in turns, so that a noisy machine is noisy for all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import stats

Step = Callable[[], None]
LEVEL = 0.95


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios with its 95 % interval, from order statistics."""

    median: float
    low: float
    high: float
    pairs: int


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
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            seconds[name].append(_timed(steps[name], burst, device))
    return {name: np.array(values) for name, values in seconds.items()}


def _timed(step: Step, burst: int, device: torch.device) -> float:
    wait_for(device)
    begun = time.perf_counter()
    for _ in range(burst):
        step()
    wait_for(device)
    return (time.perf_counter() - begun) / burst


def wait_for(device: torch.device) -> None:
    """Returns when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def paired_ratio(numerator: ArrayLike, denominator: ArrayLike) -> Ratio:
    """Median of numerator[i]/denominator[i] over n rounds, with its interval.

    The interval runs between the ranks that hold the median with a probability of 95 % for any
    distribution (binomial); it is as wide as the data where n < 6.
    """
    ratios = np.sort(np.asarray(numerator) / np.asarray(denominator))
    n = len(ratios)
    rank = max(0, int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5)) - 1)
    return Ratio(
        float(np.median(ratios)), float(ratios[rank]), float(ratios[n - 1 - rank]), len(ratios)
    )
