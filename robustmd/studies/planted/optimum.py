"""The convex losses, and what the best model could have: optima from a solver with a certificate.

F* = min_w max_k f_k(w)             what opt and its kin are after
G* = min_w max_k (f_k(w) − f*_k)    what regret is after;  f*_k = min_w f_k(w)
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from robustmd.studies.planted.domains import Sample
from robustmd.studies.saddle import SaddlePoint, minimise_mixture, solve

RIDGE = 0.01  # ρ: every f_k is ρ-strongly convex, so that every optimum is one point


@dataclass(frozen=True)
class Optimum:
    """The optima of one sample.

    Attributes:
        alone: f* [K], every domain's own best loss.
        worst_case: the saddle point of F*; its `upper` is max_k f_k(w*), `lower` bounds F* below.
        worst_excess: the same of G*.
    """

    alone: np.ndarray
    worst_case: SaddlePoint
    worst_excess: SaddlePoint

    @property
    def error(self) -> float:
        """A bound on the error of F* and of G*: the larger duality gap."""
        saddles = (self.worst_case, self.worst_excess)
        return max(saddle.upper - saddle.lower for saddle in saddles)


def solve_optimum(sample: Sample) -> Optimum:
    """F*, G* and f* of one sample's training losses."""
    K, _, d = sample.signed.shape
    domains = [Sample(sample.signed[k : k + 1], sample.shares[k : k + 1]) for k in range(K)]
    alone = np.array(
        [minimise_mixture(partial(losses_and_jacobian, one), np.ones(1), d)[0] for one in domains]
    )

    def excess(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, J = losses_and_jacobian(sample, w)
        return f - alone, J

    return Optimum(alone, solve(partial(losses_and_jacobian, sample), d), solve(excess, d))


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
