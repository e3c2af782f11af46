"""The counterexample to Theorem 4 as printed."""

import torch
from torch import Tensor

from robustmd.theory.problem import Point
from robustmd.theory.streams import stream


class Parabolas:
    """f(w) = ((w − 1)², (w + 1)²), a model of one number, without noise.

    F(w) = max_k f_k(w) = (|w| + 1)² has a kink at its minimum, w = 0: ‖∇F(w)‖² = 4(|w| + 1)² ≥ 4
    everywhere else, so that no step size brings its mean below 4. With the L2 regularizer,
    F(w) = max_p p·f(w) − (λ/2)‖p − q‖², which is smooth, it goes to 0.
    """

    num_domains: int = 2
    num_parameters: int = 1
    num_examples: int = 1
    batch_size: int = 1
    centres: tuple[float, float] = (1.0, -1.0)

    sigma: float = 4.0  # |f_k'(w)| = 2|w ∓ 1| ≤ 4 for |w| ≤ 1, where every run stays
    smoothness: float = 2.0
    jacobian: float = 4.0  # ‖J‖ = sqrt(8w² + 8) ≤ 4

    def start(self, seed: int) -> Tensor:
        """w₁ uniform on [−1, 1]."""
        return torch.tensor([stream(seed, "start").uniform(-1.0, 1.0)], dtype=torch.float64)

    def evaluate(self, W: Tensor, shares: Tensor) -> Point:
        """See `Problem.evaluate`; f̂ is f."""
        away = W - W.new_tensor(self.centres)  # [n, 2]
        losses = away.square()

        def gradients(p: Tensor) -> tuple[Tensor, Tensor]:
            g = (2 * p * away).sum(dim=1, keepdim=True)
            return g, g

        return Point(losses, losses, gradients)
