"""What is drawn over the iterations: numbers made of the losses f_k(W_t) or of the weights p_t."""

import numpy as np

from robustmd.report.figures.traces import Trace

Curve = tuple[np.ndarray, np.ndarray]  # iterations [M], values [M]


def worst_loss(trace: Trace) -> Curve:
    """f_w(t) = max_k f_k(W_t) [nats], within the run."""
    return trace.iterations, trace.losses.max(axis=1, initial=0.0)


def best_loss(trace: Trace) -> Curve:
    """min_k f_k(W_t) [nats], within the run."""
    return trace.iterations, trace.losses.min(axis=1, initial=np.inf)


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


def loss_quantiles(trace: Trace, shares: tuple[float, ...]) -> np.ndarray:
    """Quantiles of f_k(W_t) over the domains [nats], [len(shares), M]."""
    if not len(trace.losses):
        return np.empty((len(shares), 0))
    return np.quantile(trace.losses, shares, axis=1)


def sorted_weights(trace: Trace) -> Curve:
    """(1..K, K·p in descending order) of the last recorded weights; 1 is what even gives."""
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
    """Whether the weights change at all: those of even and of an individual model do not."""
    return bool(len(trace.weights) and np.ptp(trace.weights, axis=0).max() > 1e-9)
