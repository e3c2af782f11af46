"""A line and its band: mean over seeds, and how far the seeds lie apart."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robustmd.report.aggregate import Group
from robustmd.report.estimate import SpreadKind, t_quantile
from robustmd.report.figures.traces import Trace

KINDS: dict[SpreadKind, str] = {
    "std": "± sample standard deviation over seeds",
    "sem": "± standard error of the mean over seeds",
    "ci95": "95 % t interval of the mean over seeds",
}
Values = Callable[[Trace], tuple[np.ndarray, np.ndarray]]  # a trace to (iterations [M], values [M])


@dataclass(frozen=True)
class Band:
    """Arrays of one length, ascending in `iterations`: those at which every seed has a value.

    `low` and `high` are mean ∓ half-width; `least` is the smallest value of any seed. With n = 1
    all are the one run's line.
    """

    n: int
    iterations: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray

    def __len__(self) -> int:
        return len(self.iterations)


def band(curves: Sequence[tuple[np.ndarray, np.ndarray]], kind: SpreadKind) -> Band:
    """Of n curves, one a seed, each (iterations, values); `kind` is one of `KINDS`."""
    common = sorted(set.intersection(*(set(t.tolist()) for t, _ in curves))) if curves else []
    lookups = [dict(zip(t.tolist(), values.tolist(), strict=True)) for t, values in curves]
    values = np.array([[one[t] for t in common] for one in lookups], float)
    values = values.reshape(len(curves), len(common))
    if not common:
        empty = np.empty(0)
        return Band(len(curves), np.empty(0, int), empty, empty, empty, empty)
    mean, half = values.mean(axis=0), half_width(values, kind)
    times = np.array(common, int)
    return Band(len(curves), times, mean, mean - half, mean + half, values.min(axis=0))


def half_width(values: np.ndarray, kind: SpreadKind) -> np.ndarray:
    """[M] of values [n, M]: s (std), s/√n (sem), t_{0.975, n−1} s/√n (ci95); 0 where n = 1."""
    n = len(values)
    if n < 2:
        return np.zeros(values.shape[1])
    std = values.std(axis=0, ddof=1)
    if kind == "std":
        return std
    factor = t_quantile(n - 1) if kind == "ci95" else 1.0
    return factor * std / math.sqrt(n)


def group_band(group: Group, traces: Sequence[Trace], values: Values, kind: SpreadKind) -> Band:
    """The band of a group's runs; runs without any value (no weights recorded) do not count."""
    wanted = {run.path for run in group.runs}
    curves = [values(trace) for trace in traces if trace.run.path in wanted]
    return band([curve for curve in curves if len(curve[0])], kind)
