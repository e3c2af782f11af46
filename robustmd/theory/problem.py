"""What the study asks of a problem: K losses f(W) and their gradients, for many W at once."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from torch import Tensor


class Point(NamedTuple):
    """The losses at n models W, one a lane, each on a mini-batch of its own.

    Attributes:
        losses: f(W) [n, K], on all examples.
        batch_losses: f̂(W) [n, K], on the mini-batches.
        gradients: p [n, K] ↦ (g [n, P], ĝ [n, P]), g = Σ_k p_k ∇f_k(W), ĝ = Σ_k p_k ∇f̂_k(W).
    """

    losses: Tensor
    batch_losses: Tensor
    gradients: Callable[[Tensor], tuple[Tensor, Tensor]]


class Problem(Protocol):
    """K losses f(W) of a model with P parameters, in float64.

    Attributes:
        num_domains: K.
        num_parameters: P.
        num_examples: N, in every domain.
        batch_size: m, drawn from every domain for f̂, i.i.d. with replacement.
    """

    num_domains: int
    num_parameters: int
    num_examples: int
    batch_size: int

    def start(self, seed: int) -> Tensor:
        """W₁ [P] of a run with that seed."""
        ...

    def evaluate(self, W: Tensor, shares: Tensor) -> Point:
        """The losses at W [n, P].

        Args:
            W: [n, P].
            shares: [n, K·N], each example's share of its domain's mini-batch: how often it was
                drawn, divided by m. The K·N examples are ordered by domain.
        """
        ...
