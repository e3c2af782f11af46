"""What the study asks of a problem: K losses f(W) and their gradients, for many W at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from robustmd.studies.streams import stream


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


class Problem(ABC):
    """K losses f(W) of a model with P parameters, in float64.

    Attributes:
        name: for the tables.
        num_domains: K.
        num_examples: N, in every domain.
        batch_size: m, drawn from every domain for f̂, i.i.d. with replacement.
    """

    name: str
    num_domains: int
    num_examples: int
    batch_size: int

    @abstractmethod
    def start(self, seed: int) -> Tensor:
        """W₁ [P] of a run with that seed."""

    @abstractmethod
    def evaluate(self, W: Tensor, shares: Tensor) -> Point:
        """The losses at W [n, P].

        Args:
            W: [n, P].
            shares: [n, K·N], each example's share of its domain's mini-batch: how often it was
                drawn, divided by m. The K·N examples are ordered by domain.
        """


class Parabolas(Problem):
    """f(w) = ((w − 1)², (w + 1)²), a model of one number, without noise.

    The counterexample to Theorem 4 as printed: F(w) = max_k f_k(w) = (|w| + 1)² has a kink at its
    minimum, w = 0, and ‖∇F(w)‖² = 4(|w| + 1)² ≥ 4 everywhere else, so that no step size brings its
    mean below 4. With the L2 regularizer, F(w) = max_p p·f(w) − (λ/2)‖p − q‖², which is smooth, it
    goes to 0.
    """

    name = "two parabolas"
    num_domains, num_examples, batch_size = 2, 1, 1

    def start(self, seed: int) -> Tensor:
        """w₁ uniform on [−1, 1]."""
        return torch.tensor([stream(seed, "start").uniform(-1.0, 1.0)], dtype=torch.float64)

    def evaluate(self, W: Tensor, shares: Tensor) -> Point:
        """f̂ is f."""
        away = W - W.new_tensor([1.0, -1.0])  # [n, 2]
        losses = away.square()

        def gradients(p: Tensor) -> tuple[Tensor, Tensor]:
            g = (2 * p * away).sum(dim=1, keepdim=True)
            return g, g

        return Point(losses, losses, gradients)
