"""What chance decides of each iteration's batch: the domains, m examples of each, their views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from robustmd.domains.domain import Examples
from robustmd.training.images import sent
from robustmd.training.seeds import content_hash, stream

BLOCK = 100  # iterations drawn at once


@dataclass(frozen=True)
class Draw:
    """All that is random of one batch, or of several along a leading dimension.

    positions:  int64 [M, m], in each domain's training set
    corners:    int64 [M, m, 2], first row and column of each crop; None: no domain is cropped
    noise_keys: int64 [M, m], see pixels.py; None: no domain is noisy
    domains:    int64 [M], ascending, the domains that were drawn; None: all are there, M = K
    """

    positions: torch.Tensor
    corners: torch.Tensor | None = None
    noise_keys: torch.Tensor | None = None
    domains: torch.Tensor | None = None

    def __getitem__(self, index: int | slice) -> Draw:
        """Part of the leading dimension: a batch of several, or some domains of a batch."""
        return Draw(*(None if part is None else part[index] for part in self.parts()))  # type: ignore[arg-type]

    def to(self, device: torch.device, *, copy: bool = False) -> Draw:
        """The same numbers there; with `copy` in memory of their own."""
        there = [None if part is None else sent(part, device) for part in self.parts()]
        return Draw(*(part.clone() if copy and part is not None else part for part in there))  # type: ignore[arg-type]

    def copy_(self, other: Draw) -> None:
        """Take the numbers of another draw of the same shape, in place."""
        for mine, theirs in zip(self.parts(), other.parts(), strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs, non_blocking=True)

    def parts(self) -> tuple[torch.Tensor | None, ...]:
        """Its arrays, in the order of the constructor's arguments."""
        return self.positions, self.corners, self.noise_keys, self.domains


class BatchStream:
    """Equal shares: m = ⌊B/M⌋ examples of each of M domains, uniformly with replacement.

    M = K unless fewer are asked for; then every iteration draws its M domains of the K, uniformly
    without replacement.

    Not sampled by p: f̂ᵗ must be an unbiased estimate of every domain's risk. Each domain's examples
    come from streams of its own that depend on the seed, its name and m alone, so that runs of one
    seed see the same examples whatever the method and device; which domains are drawn depends on
    the seed, K and M. Any iteration can be had without the others.

    Args:
        sizes: domain -> number of training examples n_k >= 1, in order.
        batch_size: B >= M.
        seed: the run's seed.
        margins: cropped domain -> (H − s, W − s), the last row and column where a crop can begin.
        noisy: the domains whose images get noise.
        domains_per_batch: M, from 1 to K; None: K.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        batch_size: int,
        seed: int,
        margins: Mapping[str, tuple[int, int]] | None = None,
        noisy: Collection[str] = (),
        domains_per_batch: int | None = None,
    ) -> None:
        self.sizes = dict(sizes)
        self.domains_per_batch = domains_per_batch or len(self.sizes)
        self.share = batch_size // self.domains_per_batch
        self.seed = seed
        self.margins = dict(margins or {})
        self.noisy = frozenset(noisy)
        self.device = torch.device("cpu")  # where draws are put, a block at a time
        self._blocks: dict[int, Draw] = {}  # the one in use and the next, on `device`

    @classmethod
    def of(
        cls,
        domains: Mapping[str, Examples],
        batch_size: int,
        seed: int,
        domains_per_batch: int | None = None,
    ) -> BatchStream:
        """The batches of these training examples, with whatever their views leave to chance."""
        margins = {}
        for name, examples in domains.items():
            (height, width), (h, w) = examples.images.shape[1:3], examples.image_size
            if (h, w) != (height, width):
                margins[name] = (height - h, width - w)
        noisy = [name for name, examples in domains.items() if examples.views.sigma > 0]
        sizes = {name: len(examples) for name, examples in domains.items()}
        return cls(sizes, batch_size, seed, margins, noisy, domains_per_batch)

    @property
    def samples_domains(self) -> bool:
        """Are there fewer domains in a batch than there are?"""
        return self.domains_per_batch < len(self.sizes)

    @property
    def effective_batch(self) -> int:
        """M·m, the examples of one iteration; less than B where M does not divide it."""
        return self.share * self.domains_per_batch

    def put_on(self, device: torch.device) -> None:
        """Let `draw` give its numbers there from now on."""
        self.device, self._blocks = device, {}

    def draw(self, iteration: int) -> Draw:
        """What is random of the batch of an iteration, from 0; on `device`.

        A block is sent to the device while the one before it is in use, so that no iteration waits.
        """
        block, offset = divmod(iteration, BLOCK)
        if block not in self._blocks:
            self._blocks = {block: self.draw_block(block).to(self.device)}
        if block + 1 not in self._blocks:
            ahead = self.draw_block(block + 1).to(self.device)
            self._blocks = {block: self._blocks[block], block + 1: ahead}
        return self._blocks[block][offset]

    def draw_block(self, block: int) -> Draw:
        """The draws of iterations 100·block to 100·block + 99, stacked; on the host."""
        domains = self._domains(block) if self.samples_domains else None
        return Draw(
            self._stacked(self._positions, block, domains),
            self._stacked(self._corners, block, domains) if self.margins else None,
            self._stacked(self._noise_keys, block, domains) if self.noisy else None,
            None if domains is None else torch.from_numpy(domains),
        )

    def fingerprint(self) -> str:
        """Hash of the first 100 batches."""
        first = self.draw_block(0).parts()
        return content_hash(*(part.numpy() for part in first if part is not None))

    def _domains(self, block: int) -> np.ndarray:
        """int64 [100, M]: the first M of a random order of the K, ascending."""
        random = stream(self.seed, "domains", block=block)
        order = random.random((BLOCK, len(self.sizes))).argsort(axis=1)
        return np.sort(order[:, : self.domains_per_batch], axis=1)

    def _stacked(
        self, part: Callable[[str, int], np.ndarray], block: int, domains: np.ndarray | None
    ) -> torch.Tensor:
        """Of all domains, or of those that each iteration drew."""
        every = np.stack([part(name, block) for name in self.sizes], axis=1)
        if domains is not None:
            every = every[np.arange(BLOCK)[:, None], domains]
        return torch.from_numpy(every)

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
