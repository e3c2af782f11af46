"""σ, γ, L, ‖J‖ and R of a problem: estimated on pilot runs, and checked against every run later."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import hessian, jacrev, vmap

from robustmd.theory.classifiers import Classifier, Logistic
from robustmd.theory.lanes import draw_batches
from robustmd.theory.saddle import minimise

PILOT_SEEDS = range(10_000, 10_005)  # the study's own seeds begin at 0
MARGIN = 1.1
_STEPS, _STEP_SIZE, _KEEP_EVERY = 300, 0.1, 20


@dataclass(frozen=True)
class Constants:
    """What the theorems assume of a problem.

    | symbol | attribute  | what it bounds                                           |
    |--------|------------|----------------------------------------------------------|
    | σ      | sigma      | ‖∇f̂_k^t(W_t)‖₂ for all k and t                           |
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


def estimate_constants(problem: Classifier) -> Constants:
    """1.1 × the largest values seen in pilot runs.

    Pilot runs are SGD at the corners and the centre of the simplex, where p may go, on other seeds
    than the study's: the mini-batches' losses and gradients there give γ and σ; the Hessians and
    Jacobians on all examples at every 20th iterate give L and ‖J‖. For the logistic problem L has
    a proof (`Logistic.smoothness`), and R is 1.1 × the largest norm of a minimiser of p·f over
    corners and centre. Larger true values would void the theorems' assumptions: the study checks
    ‖ĝ_t‖, ‖f̂ᵗ‖ and ‖W_t‖ of all its iterations against σ, γ and R.
    """
    sigma = gamma = 0.0
    points = []
    with torch.no_grad():
        for W, gradients, losses in _pilot(problem):
            sigma = max(sigma, float(torch.linalg.vector_norm(gradients, dim=-1).amax()))
            gamma = max(gamma, float(torch.linalg.vector_norm(losses, dim=-1).amax()))
            points.append(W)
    visited = torch.cat(points[::_KEEP_EVERY])
    jacobian = torch.linalg.matrix_norm(vmap(jacrev(_losses(problem)))(visited), ord=2).amax()
    convex = isinstance(problem, Logistic)
    return Constants(
        sigma=MARGIN * sigma,
        gamma=MARGIN * gamma,
        smoothness=problem.smoothness() if convex else MARGIN * _curvature(problem, visited),
        jacobian=MARGIN * float(jacobian),
        radius=MARGIN * _largest_minimiser(problem) if convex else None,
    )


def _pilot(problem: Classifier) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(W_t [n, P], ∇f̂_k^t [K, n, P], f̂ᵗ [n, K]) of n = (K + 1) × seeds runs."""
    K = problem.num_domains
    mixtures = torch.cat([torch.eye(K), torch.full((1, K), 1 / K)]).double()
    p = mixtures.repeat_interleave(len(PILOT_SEEDS), dim=0)
    W = torch.stack([problem.start(seed) for seed in PILOT_SEEDS]).repeat(K + 1, 1)
    batches = draw_batches(problem, PILOT_SEEDS)
    for _ in range(_STEPS):
        point = problem.evaluate(W, next(batches).repeat(K + 1, 1))
        corners = [point.gradients(corner.expand_as(p))[1] for corner in mixtures[:K]]
        gradients = torch.stack(corners)
        yield W, gradients, point.batch_losses
        W = W - _STEP_SIZE * torch.einsum("nk,knp->np", p, gradients)


def _losses(problem: Classifier):  # type: ignore[no-untyped-def]
    return lambda W: problem.domain_losses(W.unsqueeze(0)).squeeze(0)


def _curvature(problem: Classifier, visited: Tensor) -> float:
    """The largest spectral norm of a domain's Hessian at the points [n, P]."""
    hessians = vmap(hessian(_losses(problem)), chunk_size=50)(visited)  # [n, K, P, P]
    return float(torch.linalg.eigvalsh(hessians).abs().amax())


def _largest_minimiser(problem: Logistic) -> float:
    K = problem.num_domains
    mixtures = torch.cat([torch.eye(K), torch.full((1, K), 1 / K)]).double()
    return max(float(torch.linalg.vector_norm(minimise(problem, p)[1])) for p in mixtures)
