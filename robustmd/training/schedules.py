"""η_w over the iterations."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.optim.lr_scheduler import LambdaLR


def learning_rate_schedule(
    optimizer: torch.optim.Optimizer, schedule: str, iterations: int
) -> LambdaLR:
    """`constant`: η_w throughout. `cosine`: η_w (1 + cos(π t/T))/2, from η_w at t = 0 to 0 at T."""
    factors: dict[str, Callable[[int], float]] = {
        "constant": lambda t: 1.0,
        "cosine": lambda t: 0.5 * (1.0 + math.cos(math.pi * min(t, iterations) / iterations)),
    }
    return LambdaLR(optimizer, factors[schedule])
