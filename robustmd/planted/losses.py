"""The convex losses of the planted domains, in closed form on all examples."""

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from robustmd.planted.domains import Sample

RIDGE = 0.01  # ρ: every f_k is ρ-strongly convex, so that every optimum is one point


def cross_entropies(sample: Sample, W: np.ndarray) -> np.ndarray:
    """Mean cross entropy log(1 + exp(−y w·x)) of every domain, in nats: [n, K] for W [n, d]."""
    K, N, d = sample.signed.shape
    margins = torch.from_numpy(W @ sample.signed.reshape(K * N, d).T)  # [n, K·N]
    losses = logsigmoid(margins).view(-1, K, N)
    return np.einsum("kn,wkn->wk", sample.shares, -losses.numpy())


def training_losses(sample: Sample, W: np.ndarray) -> np.ndarray:
    """f(W) = cross entropy + (ρ/2)‖w‖²: [n, K] for W [n, d]."""
    ridge = RIDGE / 2 * np.square(W).sum(axis=1, keepdims=True)
    return cross_entropies(sample, W) + ridge


def losses_and_jacobian(sample: Sample, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(w) [K] and J [K, d], its rows ∇f_k, for w [d]."""
    margins = sample.signed @ w  # [K, N]
    f = (sample.shares * np.logaddexp(0.0, -margins)).sum(axis=1) + RIDGE / 2 * (w @ w)
    pull = sample.shares / (1 + np.exp(np.minimum(margins, 700.0)))  # σ(−margin)/n_k
    return f, RIDGE * w - (pull[:, None, :] @ sample.signed)[:, 0]
