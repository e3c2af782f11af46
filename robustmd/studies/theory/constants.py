"""σ, γ, L, ‖J‖ and R of a problem: estimated on pilot runs, and checked against every run later."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import jacrev, vmap

from robustmd.studies.saddle import minimise_mixture
from robustmd.studies.theory.problems import Classifier, Logistic
from robustmd.studies.theory.runs import draw_batches

LAM = 1.0  # λ of all experiments
PILOT_SEEDS = range(10_000, 10_020)  # the study's own seeds begin at 0
MARGIN = 1.1
_STEPS, _STEP_SIZE, _KEEP_EVERY = 300, 0.1, 20


@dataclass(frozen=True)
class Constants:
    """What the theorems assume of a problem.

    | symbol | attribute  | what it bounds                                           |
    |--------|------------|----------------------------------------------------------|
    | σ      | sigma      | ‖∇f̂_k^t(W_t)‖₂ for all k and t, and so ‖ĝ_t‖₂             |
    | γ      | gamma      | ‖f̂ᵗ(W_t)‖₂ for all t                                     |
    | L      | smoothness | the spectral norm of every f_k's Hessian                 |
    | ‖J‖    | jacobian   | the spectral norm of the Jacobian of f                   |
    | R      | radius     | ‖W_t‖₂ and the norm of the minimisers; None: not needed  |
    """

    sigma: float
    gamma: float
    smoothness: float
    jacobian: float
    radius: float | None = None

    def l2_mu(self, num_domains: int) -> float:
        """μ ≥ ‖f̂ − λ(p − q)‖₂ for uniform q: γ + λ sqrt(1 − 1/K)."""
        return self.gamma + LAM * math.sqrt(1 - 1 / num_domains)


# for |w| ≤ 1, where every run stays: |f_k'(w)| = 2|w ∓ 1|, ‖f(w)‖ and ‖J‖ = sqrt(8w² + 8) are ≤ 4
PARABOLAS = Constants(sigma=4.0, gamma=4.0, smoothness=2.0, jacobian=4.0)


def estimate_constants(problem: Classifier) -> Constants:
    """1.1 × the largest values seen in pilot runs.

    Pilot runs are SGD on the even mixture, on other seeds than the study's. Their mini-batches give
    σ and γ; the Hessians and Jacobians on all examples, at every 20th iterate, L and ‖J‖. For the
    logistic problem L has a proof (`Logistic.smoothness`), and R is 1.1 × the largest norm of a
    minimiser of p·f over the simplex's corners and centre.
    """
    sigma = gamma = 0.0
    points = []
    W = torch.stack([problem.start(seed) for seed in PILOT_SEEDS])
    corners = torch.eye(problem.num_domains, dtype=W.dtype)
    batches = draw_batches(problem, PILOT_SEEDS)
    with torch.no_grad():
        for _ in range(_STEPS):
            points.append(W)
            point = problem.evaluate(W, next(batches))
            alone = [point.gradients(p.expand(len(W), -1))[1] for p in corners]
            gradients = torch.stack(alone)  # ∇f̂_k^t(W_t) [K, n, P]
            sigma = max(sigma, float(torch.linalg.vector_norm(gradients, dim=-1).amax()))
            gamma = max(gamma, float(torch.linalg.vector_norm(point.batch_losses, dim=1).amax()))
            W = W - _STEP_SIZE * gradients.mean(dim=0)
    visited = torch.cat(points[::_KEEP_EVERY])
    jacobian = torch.linalg.matrix_norm(vmap(jacrev(problem.losses))(visited), ord=2).amax()
    if isinstance(problem, Logistic):
        smoothness = problem.smoothness()
        radius = MARGIN * _largest_minimiser(problem)
    else:
        smoothness, radius = MARGIN * _curvature(problem, visited), None
    return Constants(MARGIN * sigma, MARGIN * gamma, smoothness, MARGIN * float(jacobian), radius)


def _curvature(problem: Classifier, visited: Tensor) -> float:
    """The largest spectral norm of a domain's Hessian at the points [n, P]."""
    hessians = vmap(jacrev(jacrev(problem.losses)), chunk_size=50)(visited)  # [n, K, P, P]
    return float(torch.linalg.eigvalsh(hessians).abs().amax())


def _largest_minimiser(problem: Logistic) -> float:
    K = problem.num_domains
    mixtures = np.vstack([np.eye(K), np.full(K, 1 / K)])
    minimisers = [
        minimise_mixture(problem.losses_and_jacobian, p, problem.num_parameters)[1]
        for p in mixtures
    ]
    return max(float(np.linalg.norm(W)) for W in minimisers)
