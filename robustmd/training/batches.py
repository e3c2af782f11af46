"""Which examples make up each iteration's batch: m of every domain, i.i.d. with replacement."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from robustmd.training.seeds import content_hash, stream

BLOCK = 100  # iterations drawn at once


class BatchStream:
    """Equal shares: m = ⌊B/K⌋ examples of every domain, uniformly with replacement.

    Not sampled by p: f̂ᵗ must be an unbiased estimate of every domain's risk. Each domain has a
    stream of its own that depends on the seed and its name alone, so that runs of one seed see the
    same examples whatever the method and device, and any iteration can be had without the others.

    Args:
        sizes: domain -> number of training examples n_k >= 1, in order.
        batch_size: B >= K.
        seed: the run's seed.
    """

    def __init__(self, sizes: Mapping[str, int], batch_size: int, seed: int) -> None:
        self.sizes = dict(sizes)
        self.share = batch_size // len(self.sizes)
        self.seed = seed
        self._block = -1
        self._drawn = torch.empty(0)

    @property
    def effective_batch(self) -> int:
        """K·m, the examples of one iteration; less than B where K does not divide it."""
        return self.share * len(self.sizes)

    def draw(self, iteration: int) -> torch.Tensor:
        """int64 [K, m] on the host: positions in each domain's training set, iteration from 0."""
        block, offset = divmod(iteration, BLOCK)
        if block != self._block:
            self._drawn = torch.from_numpy(self._draw_block(block))
            self._block = block
        return self._drawn[offset]

    def fingerprint(self) -> str:
        """Hash of the first 100 batches."""
        return content_hash(self._draw_block(0))

    def _draw_block(self, block: int) -> np.ndarray:
        return np.stack(
            [
                stream(self.seed, f"batches/{name}", block=block).integers(
                    size, size=(BLOCK, self.share), dtype=np.int64
                )
                for name, size in self.sizes.items()
            ],
            axis=1,
        )
