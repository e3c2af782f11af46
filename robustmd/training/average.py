"""W̄ = (1/T) Σ_t W_t, what Algorithm 1 returns."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import nn
from torch.optim.swa_utils import update_bn


class IterateAverage(nn.Module):
    """The running mean of a model's weights over the iterations.

    Args:
        model: as it is before the first iteration; its weights count from `include` on.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def include(self, model: nn.Module, t: int) -> None:
        """Count W_t, t = 1, 2, … (W̄_t = W̄_{t−1} + (W_t − W̄_{t−1})/t); no host-device sync."""
        for mean, now in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(now, 1.0 / t)

    def ready(self, batches: Iterable[torch.Tensor]) -> nn.Module:
        """The averaged model, any batch-norm statistics estimated on the batches."""
        update_bn(batches, self.model)
        return self.model
