"""What chance decides of each iteration's batch: the domains, m examples of each, their views.

One seed, many independent streams: counter-based, drawn on the host, alike on every device.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from robustmd.domains.domain import Examples
from robustmd.registry import Augmentation

BLOCK = 100  # iterations drawn at once


def stream(seed: int, purpose: str, *, block: int = 0) -> np.random.Generator:
    """The random stream of one purpose, as "batches/mnist" (Philox 4×64), independent of every
    other purpose's. It starts at any block >= 0 at once, so that a run goes on from the middle.
    """
    key = np.array([seed, zlib.crc32(purpose.encode())], dtype=np.uint64)
    counter = np.array([0, 0, 0, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def torch_seed(seed: int, purpose: str) -> int:
    """A seed for torch's own generator, for what torch draws itself (initial weights)."""
    return int(stream(seed, purpose).integers(2**63 - 1))


def content_hash(*arrays: np.ndarray) -> str:
    """sha256 (first 16 hex digits) over the arrays' types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


class Draw(NamedTuple):
    """All that is random of one batch, or of several along a leading dimension.

    positions:  int64 [M, m], in each domain's training set
    corners:    int64 [M, m, 2], first row and column of each crop; None: no domain is cropped
    noise_keys: int64 [M, m], see pixels.py; None: no domain is noisy
    domains:    int64 [M], ascending, the domains that were drawn; None: all are there, M = K
    chance:     float32 [M, m, numbers] for the augmentation, or int64 [M, m] whose first number
        seeds torch for it; None: there is none

    With unequal shares a row is an example, [Σ m_k, 1], domain by domain; so it is in a part of a
    batch, where `domains` has the domain of each row, int64 [n].
    """

    positions: torch.Tensor
    corners: torch.Tensor | None = None
    noise_keys: torch.Tensor | None = None
    domains: torch.Tensor | None = None
    chance: torch.Tensor | None = None

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Draw:
        """The draw with every array that is there changed."""
        return Draw(*(None if part is None else change(part) for part in self))  # type: ignore[arg-type]

    def at(self, index: int | slice) -> Draw:
        """Part of the leading dimension: a batch of several, or some domains of a batch."""
        return self.each(lambda part: part[index])

    def copy_(self, other: Draw) -> None:
        """Take the numbers of another draw of the same shape, in place."""
        for mine, theirs in zip(self, other, strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs, non_blocking=True)


class BatchStream:
    """m = ⌊B/M⌋ examples of each of M domains, uniformly with replacement, or m_k by `shares`.

    M = K unless fewer are asked for; then every iteration draws its M domains of the K, uniformly
    without replacement.

    Not sampled by p: f̂ᵗ must be an unbiased estimate of every domain's risk. Each domain's examples
    come from streams of its own that depend on the seed, its name and m alone, so that runs of one
    seed see the same examples whatever the method and device; which domains are drawn depends on
    the seed, K and M. Any iteration can be had without the others.

    Args:
        domains: domain -> training examples, in order; their views leave crops and noise to chance.
        batch_size: B >= M.
        domains_per_batch: M, from 1 to K; None: K.
        shares: what the m_k are proportional to, [K], each > 0; None: equal shares. Needs M = K.
        part: (i, G): of G processes, which each take every G-th example, this is the i-th.
    """

    def __init__(
        self,
        domains: Mapping[str, Examples],
        batch_size: int,
        seed: int,
        domains_per_batch: int | None = None,
        shares: Sequence[float] | None = None,
        augmentation: Augmentation | None = None,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        self.domains, self.seed = dict(domains), seed
        self.domains_per_batch = domains_per_batch or len(self.domains)
        self.share = batch_size // self.domains_per_batch
        self.counts = None if shares is None else parts_of(batch_size, shares)
        self.samples_domains = self.domains_per_batch < len(self.domains)
        self.is_whole, self._part = part[1] == 1, slice(part[0], None, part[1])
        self._in_whole = self._in_part = self.counts or [self.share] * self.domains_per_batch
        if not self.is_whole:
            every = np.arange(self.domains_per_batch).repeat(self._in_whole)[self._part]
            self._in_part = np.bincount(every, minlength=self.domains_per_batch).tolist()
            self._places = torch.from_numpy(every.copy())  # of its examples, among the M domains
        self.augmentation = augmentation
        self.effective_batch = sum(self._in_whole)  # M·m ≤ B
        self._is_cropped = any(_margin(one) != (0, 0) for one in self.domains.values())
        self._is_noisy = any(one.views.sigma > 0 for one in self.domains.values())
        self.put_on(torch.device("cpu"))

    def put_on(self, device: torch.device) -> None:
        """Let `draw` give its numbers there from now on."""
        self.device = device
        self._blocks: dict[int, Draw] = {}  # the one in use and the next, on `device`

    def draw(self, iteration: int) -> Draw:
        """What is random of the batch of an iteration, from 0; on `device`.

        A block is sent to the device while the one before it is in use, so that no iteration waits.
        """
        block, offset = divmod(iteration, BLOCK)
        wanted = (block, block + 1)
        if not all(number in self._blocks for number in wanted):
            self._blocks = {
                number: self._blocks.get(number)
                or self.draw_block(number).each(lambda part: sent(part, self.device))
                for number in wanted
            }
        return self._blocks[block].at(offset)

    def part_of(self, draw: Draw) -> Draw:
        """This process's part of the batch of an iteration."""
        if self.is_whole:
            return draw
        rows = draw._replace(domains=None).each(lambda all_: all_.flatten(0, 1)[self._part, None])
        drawn = draw.domains
        return rows._replace(domains=self._places if drawn is None else drawn[self._places])

    def means(self, losses: torch.Tensor) -> torch.Tensor:
        """f̂ᵗ, [M], or what the part adds to it, from the losses of the part's rows."""
        if self.is_whole and self.counts is None:
            return losses
        pairs = zip(losses.split(self._in_part), self._in_whole, strict=True)
        return torch.stack([own.sum() / count for own, count in pairs])

    def draw_block(self, block: int) -> Draw:
        """The draws of iterations 100·block to 100·block + 99, stacked; on the host."""
        domains = self._domains(block) if self.samples_domains else None
        counts = self.counts or [self.share] * len(self.domains)

        def of_domains(purpose: str, draw: Callable[..., np.ndarray]) -> torch.Tensor:
            """What each domain's stream gives; of those that each iteration drew."""
            each = [
                draw(stream(self.seed, f"{purpose}/{name}", block=block), examples, (BLOCK, count))
                for (name, examples), count in zip(self.domains.items(), counts, strict=True)
            ]
            if self.counts is not None:
                return torch.from_numpy(np.concatenate(each, axis=1)[:, :, None])
            every = np.stack(each, axis=1)
            if domains is not None:
                every = every[np.arange(BLOCK)[:, None], domains]
            return torch.from_numpy(every)

        return Draw(
            of_domains("batches", lambda random, of, size: random.integers(len(of), size=size)),
            of_domains("crops", _corners) if self._is_cropped else None,
            of_domains("noise", _keys) if self._is_noisy else None,
            None if domains is None else torch.from_numpy(domains),
            of_domains("augmentation", self._chance) if self.augmentation else None,
        )

    def fingerprint(self) -> str:
        """Hash of the first 100 batches."""
        return content_hash(*(part.numpy() for part in self.draw_block(0) if part is not None))

    def _domains(self, block: int) -> np.ndarray:
        """int64 [100, M], ascending."""
        random = stream(self.seed, "domains", block=block)
        order = random.random((BLOCK, len(self.domains))).argsort(axis=1)
        return np.sort(order[:, : self.domains_per_batch], axis=1)

    def _chance(
        self, random: np.random.Generator, of: Examples, size: tuple[int, ...]
    ) -> np.ndarray:
        numbers = self.augmentation.numbers if self.augmentation else None
        if numbers is None:
            return _keys(random, of, size)
        return random.random((*size, numbers), dtype=np.float32)


def _keys(random: np.random.Generator, of: Examples, size: tuple[int, ...]) -> np.ndarray:
    return random.integers(2**63, size=size, dtype=np.int64)


def _corners(random: np.random.Generator, of: Examples, size: tuple[int, ...]) -> np.ndarray:
    """Uniform over all places of the crop; 0 for a domain without one."""
    return random.integers(_margin(of), size=(*size, 2), endpoint=True, dtype=np.int64)


def parts_of(whole: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers >= 1 that sum to `whole` >= len(shares), as near as can be to these shares."""
    wanted = np.asarray(shares, dtype=np.float64) * (whole / sum(shares))
    parts = np.ones(len(shares), dtype=np.int64)
    for _ in range(whole - len(shares)):
        parts[np.argmax(wanted - parts)] += 1
    return parts.tolist()


def _margin(examples: Examples) -> tuple[int, int]:
    """(H − s, W − s), the last row and column where a crop can begin."""
    (height, width), (h, w) = examples.images.shape[1:3], examples.image_size[:2]
    return height - h, width - w


def sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor on `device`, itself if it is there.

    To CUDA it goes from pinned memory: from any other the copy would make the host wait until all
    work before it is done. torch keeps the pinned copy until it was read, and then uses it again.
    Where no (more) memory can be pinned, the host waits.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        try:
            tensor = tensor.contiguous().pin_memory()  # an expanded one cannot be pinned
        except RuntimeError:
            return tensor.to(device)
    return tensor.to(device, non_blocking=True)
