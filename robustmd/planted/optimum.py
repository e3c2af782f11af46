"""What the best model could have: the worst case's optimum, from a solver with a certificate.

F* = min_w max_k f_k(w)             what opt and its kin are after
G* = min_w max_k (f_k(w) − f*_k)    what regret is after;  f*_k = min_w f_k(w)
"""

from dataclasses import dataclass

import numpy as np

from robustmd.planted.domains import Sample
from robustmd.planted.losses import losses_and_jacobian
from robustmd.theory.saddle import SaddlePoint, minimise_mixture, solve


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

    def losses(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return losses_and_jacobian(sample, w)

    alone = np.array([_alone(sample, k) for k in range(K)])

    def excess(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, J = losses(w)
        return f - alone, J

    return Optimum(alone, solve(losses, d), solve(excess, d))


def _alone(sample: Sample, k: int) -> float:
    """f*_k."""
    only = Sample(sample.signed[k : k + 1], sample.shares[k : k + 1])
    found, _ = minimise_mixture(
        lambda w: losses_and_jacobian(only, w), np.ones(1), sample.signed.shape[2]
    )
    return found
