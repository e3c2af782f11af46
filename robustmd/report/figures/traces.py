"""What a run recorded over its iterations, read once for all figures."""

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from robustmd.runs import files
from robustmd.runs.run import Run
from robustmd.runs.untrusted import Unreadable, read_table

# Without batch_loss, which is empty for a domain that an iteration did not draw.
COLUMNS = {"iteration": int, "domain": str, "weight": float}
MOST_POINTS = 400  # of a line: more cannot be seen, and would make the PDF heavy


@dataclass(frozen=True)
class Trace:
    """One run over time, K domains in the order of `run.domains`.

    `iterations` int [M], ascending, and `losses` float [M, K]: f_k(W_t) on the training set [nats],
    where all K were measured and finite. `steps` int [S] and `weights` float [S, K]: p_t as used in
    iteration t; S = 0 where none are recorded, or none for all domains.
    """

    run: Run
    iterations: np.ndarray
    losses: np.ndarray
    steps: np.ndarray
    weights: np.ndarray


def read_trace(run: Run) -> Trace:
    """The run's trace; a weights.csv that cannot be read leaves its part empty."""
    iterations, losses = _losses(run)
    steps, weights = _nothing(run)
    if run.domain is None:
        # The run's other numbers are sound without it: it is left out where weights are drawn.
        with contextlib.suppress(Unreadable):
            steps, weights = _weights(run)
    return Trace(run, iterations, losses, steps, weights)


def _losses(run: Run) -> tuple[np.ndarray, np.ndarray]:
    series = run.history.get("train")
    if series is None:
        return _nothing(run)
    finite = np.isfinite(series.loss).all(axis=1)
    return series.iterations[finite], series.loss[finite]


def _weights(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Of weights.csv: the iterations with one finite weight a domain, thinned to `MOST_POINTS`."""
    frame = pd.DataFrame(read_table(run.path / files.WEIGHTS, COLUMNS), columns=[*COLUMNS])
    sound = frame[frame["domain"].isin(run.domains) & np.isfinite(frame["weight"])]
    last = sound.drop_duplicates(["iteration", "domain"], keep="last")
    table = last.pivot(index="iteration", columns="domain", values="weight")
    whole = table.reindex(columns=list(run.domains)).dropna()  # ascending in iteration
    stride = max(1, math.ceil(len(whole) / MOST_POINTS))
    kept = [*range(0, len(whole), stride)]
    if len(whole) and kept[-1] != len(whole) - 1:
        kept.append(len(whole) - 1)
    thinned = whole.iloc[kept]
    return thinned.index.to_numpy(int), thinned.to_numpy(float)


def _nothing(run: Run) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, int), np.empty((0, len(run.domains)))


def read_traces(runs: Iterable[Run]) -> tuple[Trace, ...]:
    """The trace of every run."""
    return tuple(read_trace(run) for run in runs)
