"""What a run recorded over its iterations, read once for all figures, and the curves made of it."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from robustmd.runs import files
from robustmd.runs.run import Run, Series
from robustmd.runs.untrusted import Unreadable, read_table

# Without batch_loss, which is empty for a domain that an iteration did not draw.
COLUMNS = {"iteration": int, "domain": str, "weight": float}
MOST_POINTS = 400  # of a line: more cannot be seen, and would make the PDF heavy
Curve = tuple[np.ndarray, np.ndarray]  # iterations [M], values [M]


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
    nothing = np.empty(0, int), np.empty((0, len(run.domains)))
    series = run.history.get("train")
    iterations, losses = nothing
    if series is not None:
        finite = np.isfinite(series.loss).all(axis=1)
        iterations, losses = series.iterations[finite], series.loss[finite]
    steps, weights = nothing
    if run.domain is None:
        # The run's other numbers are sound without it: it is left out where weights are drawn.
        with contextlib.suppress(Unreadable):
            steps, weights = _weights(run)
    return Trace(run, iterations, losses, steps, weights)


def _weights(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Of weights.csv: the iterations with one finite weight a domain, thinned to `MOST_POINTS`."""
    frame = pd.DataFrame(read_table(run.path / files.WEIGHTS, COLUMNS), columns=[*COLUMNS])
    sound = frame[frame["domain"].isin(run.domains) & np.isfinite(frame["weight"])]
    last = sound.drop_duplicates(["iteration", "domain"], keep="last")
    table = last.pivot(index="iteration", columns="domain", values="weight")
    whole = table.reindex(columns=list(run.domains)).dropna()  # ascending in iteration
    kept = np.linspace(0, len(whole) - 1, min(len(whole), MOST_POINTS)).round().astype(int)
    thinned = whole.iloc[kept]
    return thinned.index.to_numpy(int), thinned.to_numpy(float)


def worst_loss(trace: Trace) -> Curve:
    """f_w(t) = max_k f_k(W_t) [nats], within the run."""
    return trace.iterations, trace.losses.max(axis=1, initial=0.0)


def best_loss(trace: Trace) -> Curve:
    """min_k f_k(W_t) [nats], within the run."""
    return trace.iterations, trace.losses.min(axis=1, initial=np.inf)


def worst_accuracy(history: Mapping[str, Series]) -> Curve:
    """Of the test sets [%], within the run: of its `history` or its `unseen_history`."""
    series = history.get("test")
    if series is None:
        return np.empty(0, int), np.empty(0)
    return series.iterations, series.worst_accuracy


def discrepancy(trace: Trace) -> Curve:
    """f_a(W_t) − f_b(W_t) [nats]: a the first, b the last domain as the data set orders them."""
    return trace.iterations, trace.losses[:, 0] - trace.losses[:, -1]


def loss_range(trace: Trace) -> Curve:
    """max_k f_k(W_t) − min_k f_k(W_t) [nats]; |discrepancy| where K = 2."""
    return trace.iterations, worst_loss(trace)[1] - best_loss(trace)[1]


def middle_range(trace: Trace) -> Curve:
    """The 90 % minus the 10 % quantile of f_k(W_t) over the domains [nats]: what most of many lie
    apart, without the one best and the one worst."""
    low, high = loss_quantiles(trace, (0.1, 0.9))
    return trace.iterations, high - low


def loss_quantiles(trace: Trace, shares: Sequence[float]) -> np.ndarray:
    """Quantiles of f_k(W_t) over the domains [nats], [len(shares), M]."""
    if not len(trace.losses):
        return np.empty((len(shares), 0))
    return np.quantile(trace.losses, shares, axis=1)


def sorted_weights(trace: Trace) -> Curve:
    """(1..K, K·p in descending order) of the last recorded weights; 1 is the same for all."""
    if not len(trace.weights):
        return np.empty(0, int), np.empty(0)
    count = trace.weights.shape[1]
    return np.arange(1, count + 1), count * np.sort(trace.weights[-1])[::-1]


def cumulated_weights(trace: Trace) -> Curve:
    """(1..K, weight of the r domains with the largest) of the last recorded weights."""
    ranks, values = sorted_weights(trace)
    return ranks, np.cumsum(values) / max(len(values), 1)


def drift(trace: Trace) -> Curve:
    """p_a − p_b of the weights used in iteration t: a the first, b the last domain."""
    return trace.steps, trace.weights[:, 0] - trace.weights[:, -1]


def effective_domains(trace: Trace) -> Curve:
    """exp(H(p_t)), H(p) = −Σ_k p_k log p_k: K for even weights, 1 for all weight on one domain."""
    p = np.clip(trace.weights, 0.0, None)
    logs = np.log(p, where=p > 0, out=np.zeros_like(p))
    return trace.steps, np.exp(-(p * logs).sum(axis=1))


def is_moving(trace: Trace) -> bool:
    """Whether the weights change at all: those that a user fixed do not."""
    return bool(len(trace.weights) and np.ptp(trace.weights, axis=0).max() > 1e-9)
