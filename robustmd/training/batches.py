"""What chance decides of each iteration's batch: m examples of every domain, and their views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from robustmd.domains.domain import Examples
from robustmd.training.seeds import content_hash, stream

BLOCK = 100  # iterations drawn at once


@dataclass(frozen=True)
class Draw:
    """All that is random of one batch, or of several along a leading dimension; on the host.

    positions:  int64 [K, m], in each domain's training set
    corners:    int64 [K, m, 2], first row and column of each crop; None: no domain is cropped
    noise_keys: int64 [K, m], see pixel_noise.py; None: no domain is noisy
    """

    positions: torch.Tensor
    corners: torch.Tensor | None = None
    noise_keys: torch.Tensor | None = None

    def __getitem__(self, index: int) -> Draw:
        """One along the leading dimension: a batch of several, or a domain's part of a batch."""
        return Draw(
            self.positions[index],
            None if self.corners is None else self.corners[index],
            None if self.noise_keys is None else self.noise_keys[index],
        )

    def to(self, device: torch.device, *, copy: bool = False) -> Draw:
        """The same numbers there; with `copy` in memory of their own."""
        return Draw(
            *(None if part is None else part.to(device, copy=copy) for part in self._parts())  # type: ignore[arg-type]
        )

    def copy_(self, other: Draw) -> None:
        """Take the numbers of another draw of the same shape, in place."""
        for mine, theirs in zip(self._parts(), other._parts(), strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs, non_blocking=True)

    def _parts(self) -> tuple[torch.Tensor | None, ...]:
        return self.positions, self.corners, self.noise_keys


class BatchStream:
    """Equal shares: m = ⌊B/K⌋ examples of every domain, uniformly with replacement.

    Not sampled by p: f̂ᵗ must be an unbiased estimate of every domain's risk. Each domain has
    streams of its own that depend on the seed and its name alone, so that runs of one seed see the
    same examples whatever the method and device, and any iteration can be had without the others.

    Args:
        sizes: domain -> number of training examples n_k >= 1, in order.
        batch_size: B >= K.
        seed: the run's seed.
        margins: cropped domain -> (H − s, W − s), the last row and column where a crop can begin.
        noisy: the domains whose images get noise.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        batch_size: int,
        seed: int,
        margins: Mapping[str, tuple[int, int]] | None = None,
        noisy: Collection[str] = (),
    ) -> None:
        self.sizes = dict(sizes)
        self.share = batch_size // len(self.sizes)
        self.seed = seed
        self.margins = dict(margins or {})
        self.noisy = frozenset(noisy)
        self.device = torch.device("cpu")  # where draws are put, a block at a time
        self._block = -1
        self._drawn = Draw(torch.empty(0))

    @classmethod
    def of(cls, domains: Mapping[str, Examples], batch_size: int, seed: int) -> BatchStream:
        """The batches of these training examples, with whatever their views leave to chance."""
        margins = {}
        for name, examples in domains.items():
            (height, width), (h, w) = examples.images.shape[1:3], examples.image_size
            if (h, w) != (height, width):
                margins[name] = (height - h, width - w)
        noisy = [name for name, examples in domains.items() if examples.views.sigma > 0]
        sizes = {name: len(examples) for name, examples in domains.items()}
        return cls(sizes, batch_size, seed, margins, noisy)

    @property
    def effective_batch(self) -> int:
        """K·m, the examples of one iteration; less than B where K does not divide it."""
        return self.share * len(self.sizes)

    def draw(self, iteration: int) -> Draw:
        """What is random of the batch of an iteration, from 0; on `device`."""
        block, offset = divmod(iteration, BLOCK)
        if block != self._block:
            self._drawn = self.draw_block(block).to(self.device)
            self._block = block
        return self._drawn[offset]

    def draw_block(self, block: int) -> Draw:
        """The draws of iterations 100·block to 100·block + 99, along a leading dimension."""
        return Draw(
            self._stacked(self._positions, block),
            self._stacked(self._corners, block) if self.margins else None,
            self._stacked(self._noise_keys, block) if self.noisy else None,
        )

    def fingerprint(self) -> str:
        """Hash of the first 100 batches."""
        first = self.draw_block(0)
        drawn = (first.positions, first.corners, first.noise_keys)
        return content_hash(*(part.numpy() for part in drawn if part is not None))

    def _stacked(self, part: Callable[[str, int], np.ndarray], block: int) -> torch.Tensor:
        return torch.from_numpy(np.stack([part(name, block) for name in self.sizes], axis=1))

    def _positions(self, name: str, block: int) -> np.ndarray:
        random = stream(self.seed, f"batches/{name}", block=block)
        return random.integers(self.sizes[name], size=(BLOCK, self.share), dtype=np.int64)

    def _corners(self, name: str, block: int) -> np.ndarray:
        """Uniform over all places of the crop; 0 for a domain without one."""
        last = self.margins.get(name, (0, 0))
        random = stream(self.seed, f"crops/{name}", block=block)
        return random.integers(last, size=(BLOCK, self.share, 2), endpoint=True, dtype=np.int64)

    def _noise_keys(self, name: str, block: int) -> np.ndarray:
        random = stream(self.seed, f"noise/{name}", block=block)
        return random.integers(2**63, size=(BLOCK, self.share), dtype=np.int64)
