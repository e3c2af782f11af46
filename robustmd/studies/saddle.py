"""The saddle point of a convex problem, from a solver, with its certificate: the duality gap."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, nnls

Losses = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""W [P] ↦ f(W) [K] and J [K, P], its rows ∇f_k; every f_k strongly convex."""


@dataclass(frozen=True)
class SaddlePoint:
    """min_W max_{p∈Δ} p·f(W).

    Attributes:
        model: W* [P].
        weights: p* [K].
        upper: max_k f_k(W*) ≥ the value.
        lower: min_W p*·f(W) ≤ the value; upper − lower bounds the error of both.
    """

    model: np.ndarray
    weights: np.ndarray
    upper: float
    lower: float


def solve(losses: Losses, num_parameters: int) -> SaddlePoint:
    """Epigraph form: min ε over (W, ε) with f_k(W) ≤ ε for all k, by SLSQP."""
    P = num_parameters
    f, _ = losses(np.zeros(P))
    found = minimize(
        lambda x: (x[-1], np.append(np.zeros(P), 1.0)),
        np.append(np.zeros(P), f.max()),
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda x: x[-1] - losses(x[:-1])[0],
            "jac": lambda x: np.column_stack([-losses(x[:-1])[1], np.ones(len(f))]),
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    W = found.x[:-1]
    f, J = losses(W)
    p = _multipliers(f, J)
    return SaddlePoint(W, p, float(f.max()), minimise_mixture(losses, p, P)[0])


def _multipliers(f: np.ndarray, J: np.ndarray) -> np.ndarray:
    """p*: Σ_k p_k ∇f_k vanishes over the domains with f_k = ε, by non-negative least squares."""
    active = f > f.max() - 1e-6
    one = 1e3  # weighs Σ p = 1 above stationarity, which then need not be exact
    system = np.vstack([J[active].T, np.full((1, active.sum()), one)])
    p = np.zeros(len(f))
    p[active] = nnls(system, np.append(np.zeros(J.shape[1]), one))[0]
    return p / p.sum()


def duality_gap(losses: Losses, W: np.ndarray, p: np.ndarray) -> float:
    """max_p' L(p', W) − min_W' L(p, W') ≥ 0 for W [P], p [K]; 0 at a saddle point only."""
    return float(losses(W)[0].max()) - minimise_mixture(losses, p, len(W))[0]


def minimise_mixture(
    losses: Losses, p: np.ndarray, num_parameters: int
) -> tuple[float, np.ndarray]:
    """min_W p·f(W), which is smooth and strongly convex, and its W [P]."""

    def mixture(W: np.ndarray) -> tuple[float, np.ndarray]:
        f, J = losses(W)
        return float(p @ f), p @ J

    start = np.zeros(num_parameters)
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    found = minimize(mixture, start, jac=True, method="L-BFGS-B", options=options)
    return float(found.fun), found.x
