"""The run's images on its device, and its batches, which the seed and the iteration alone decide.

One seed, many independent streams: counter-based, drawn on the host, alike on every device.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from robustmd.domains.domain_set import SPLITS, DomainSet, Split, Views
from robustmd.domains.variants import BRIGHTEST, Look, Variants, keys_of_images
from robustmd.registry import Augmentation

BLOCK = 100  # iterations whose batches are drawn at once
AHEAD = 4  # batches read in advance where the images stay on the host
LARGEST_SHARE = 0.5  # of the device's free memory that images may take

Draw = dict[str, Tensor]  # what is random of one batch, or of several; see `Batches.draw`


def stream(seed: int, purpose: str, block: int = 0) -> np.random.Generator:
    """The random numbers of one purpose, as "batches/mnist" (Philox 4×64), independent of every
    other purpose's. They begin at any block, so that a run goes on from the middle."""
    key = np.array([seed, zlib.crc32(purpose.encode())], dtype=np.uint64)
    counter = np.array([0, 0, 0, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def torch_seed(seed: int, purpose: str) -> int:
    """A seed for torch's own generator, for what torch draws itself (initial weights)."""
    return int(stream(seed, purpose).integers(2**63 - 1))


def normalised(images: Tensor) -> Tensor:
    """uint8 [n, H, W, 3] -> float32 [n, 3, H, W], channels last in memory; features and tokens as
    they are.

    x ↦ (x/255 − 0.5)/0.25, the same for every domain, so in [−2, 2]. The paper does not say; with
    [−1, 1] a network without batch norm stays at its starting loss for hundreds of iterations.
    """
    if images.dtype != torch.uint8:
        return images
    return images.permute(0, 3, 1, 2).float().div_(63.75).sub_(2.0)


def masked(logits: Tensor, absent: Tensor | None) -> Tensor:
    """The logits [n, C] with −∞ for the classes that a domain does not have (bool [n, C] or [C]):
    they then have probability 0, and loss and gradient are those of a head without their rows."""
    return logits if absent is None else logits.masked_fill(absent, -torch.inf)


@dataclass(frozen=True)
class Part:
    """The n examples of one split of one domain, and how a measurement sees them.

    number: the domain's, of all K. rows: int64 [n], of the array of images. ids: int64 [n], the
    stored image of each, also where `rows` are of its features. turns, keys: int64 [n], as in
    `Look`; None: nothing is turned, or noisy. level: where the noise of its σ begins.
    """

    number: int
    rows: Tensor
    ids: Tensor
    turns: Tensor | None = None
    keys: Tensor | None = None
    level: int = 0

    def __len__(self) -> int:
        return len(self.rows)


class Images:
    """All images in one array, on the device or, where they do not fit, mapped on the host; and
    which of them each split of each domain has.

    images: uint8 [N, H, W, 3], features float32 [N, …] or tokens int64 [N, …]. size: of what is
    seen. labels: int64 [N] or float32 [N, L], on the device. absent: bool [K, C], the classes that
    a domain's loss leaves out; None: there are none. parts: split -> domain -> `Part`.

    Args:
        seed: chooses the noise that images are measured with.
        share: of the device's free memory that the images may take.
    """

    def __init__(
        self,
        domains: DomainSet,
        device: torch.device,
        seed: int = 0,
        share: float = LARGEST_SHARE,
    ) -> None:
        self.device = torch.empty(0, device=device).device  # "cuda" as tensors name it: "cuda:0"
        images = _mapped(domains.images)
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else torch.inf
        self.images = images.to(device) if images.nbytes <= share * free else images
        self.labels = _mapped(domains.targets).to(device)
        absent = domains.absent_classes()
        self.absent = torch.from_numpy(absent).to(device) if absent.any() else None
        self.files, self.size, self.variants = domains.files, domains.image_size, None
        views = [split.views for domain in domains for split in domain.splits.values()]
        if any(view != Views() for view in views):
            self.variants = Variants(views, tuple(self.images.shape[1:3]), self.device)
        self.parts: dict[str, dict[str, Part]] = {split: {} for split in SPLITS}
        for number, domain in enumerate(domains):
            for split, examples in domain.splits.items():
                purpose = f"measured noise/{split}/{domain.name}"
                self.parts[split][domain.name] = self._part(number, examples, seed, purpose)

    def _part(self, number: int, split: Split, seed: int, purpose: str) -> Part:
        """Example p of a split with V variants is its stored image p // V in variant p % V."""
        names = split.views.variants
        rows = torch.from_numpy(split.rows).repeat_interleave(len(names))
        if self.variants is None:
            return Part(number, rows, rows)
        turns = torch.tensor([self.variants.turns[name] for name in names]).repeat(split.stored)
        keys = None
        if split.views.sigma:
            start = int(stream(seed, purpose).integers(2**63))
            variant = torch.arange(len(names)).repeat(split.stored)
            keys = keys_of_images(start, (rows - split.first) * len(names) + variant)
        level = self.variants.levels[split.views.sigma]
        return Part(number, rows, rows, turns if turns.any() else None, keys, level)

    def some_of_each(self, limit: int, seed: int) -> dict[str, Tensor]:
        """A fixed random subset of each training set that has more examples, by its domain."""
        return {
            name: torch.from_numpy(
                stream(seed, f"measurement/{name}").permutation(len(part))[:limit].copy()
            ).sort()[0]
            for name, part in self.parts["train"].items()
            if len(part) > limit
        }

    @property
    def resident(self) -> bool:
        """Whether the images lie on the device."""
        return self.images.device == self.device

    def read(self, look: Look) -> Tensor:
        """The stored images of a look, from where they are."""
        if self.variants is None:
            return self.images.index_select(0, look.rows)
        return self.variants.read(self.images, look)

    def finish(self, images: Tensor, look: Look) -> Tensor:
        """On the device, as they are seen: uint8 [n, h, w, 3], features or tokens [n, …]."""
        return images if self.variants is None else self.variants.finish(images, look)

    def chunks(
        self, part: Part, size: int, positions: Tensor | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """What a measurement sees of a split of a domain, in order, `size` examples at a time:
        images as the model takes them, and their labels. positions: int64, which examples."""
        chosen = torch.arange(len(part)) if positions is None else positions
        for some in chosen.split(size):
            look = Look(part.rows[some])
            if part.turns is not None:
                look = look._replace(turns=part.turns[some])
            if part.keys is not None:
                levels = torch.full_like(some, part.level)
                look = look._replace(keys=part.keys[some], levels=levels)
            on_device = look.to(self.device)
            read = self.read(on_device if self.resident else look).to(self.device)
            yield normalised(self.finish(read, on_device)), self.labels[on_device.rows]


def _mapped(array: np.ndarray) -> Tensor:
    with warnings.catch_warnings():  # a read-only map is what we want; nothing here writes to it
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


class Batch(NamedTuple):
    """images: as the model takes them, [n, …]. labels: [n]. whose: int64 [n], each example's
    domain. domains: int64 [M], which were drawn; None: all K."""

    images: Tensor
    labels: Tensor
    whose: Tensor
    domains: Tensor | None


class Batches:
    """m = ⌊B/M⌋ examples of each of M domains, domain by domain, uniformly with replacement.

    M = K unless fewer are asked for; then every iteration draws its M domains of the K, uniformly
    without replacement. Not sampled by p: f̂ᵗ must be an unbiased estimate of every domain's risk.
    Each domain's examples come from streams of its own that depend on the seed, its name and m
    alone, so that runs of one seed see the same examples whatever the method and device.

    Args:
        trained: the K domains, by name.
        drawn: M, from 1 to K.
        batch_size: B >= M.
        part: (i, G): of G processes, which each take every G-th example, this is the i-th.
    """

    def __init__(
        self,
        images: Images,
        trained: Sequence[str],
        drawn: int,
        batch_size: int,
        seed: int,
        augmentation: Augmentation | None = None,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        self.images, self.trained, self.seed = images, tuple(trained), seed
        self.parts = [images.parts["train"][name] for name in trained]
        self.drawn, self.share = drawn, batch_size // drawn
        self.augmentation, self._own = augmentation, slice(part[0], None, part[1])
        # An augmentation without numbers of its own draws from torch's, seeded for each batch.
        self.draws_by_seed = augmentation is not None and augmentation.numbers is None
        self.draw_once = lru_cache(maxsize=3)(self.draw)
        self._block, self._seed = -1, 0
        self._held: Draw = {}  # a block of draws, on the device, where a graph reads it
        self._place = torch.zeros(1, dtype=torch.int64, device=images.device)
        self._reader = None if images.resident else ThreadPoolExecutor(1)
        self._ahead: dict[int, Future[Tensor]] = {}

    def __call__(self, iteration: int) -> Batch:
        """The batch of an iteration, from 0."""
        self.go_to(iteration)
        return self.gather()

    def go_to(self, iteration: int) -> None:
        """Let `gather` give the batch of that iteration; every 100th draws on the host."""
        block, place = divmod(iteration, BLOCK)
        if block != self._block:
            for name, values in self.draw_once(block).items():
                empty = torch.empty_like(values, device=self.images.device)
                self._held.setdefault(name, empty).copy_(sent(values, self.images.device))
            self._block = block
        self._place.fill_(place)
        if self.draws_by_seed:
            self._seed = int(self.draw_once(block)["chance"][place, 0])
        if self._reader is not None:
            for wanted in range(iteration, iteration + AHEAD):
                if wanted not in self._ahead:
                    self._ahead[wanted] = self._reader.submit(self._read, wanted)
            for old in [number for number in self._ahead if number < iteration]:
                del self._ahead[old]

    def gather(self) -> Batch:
        """The batch of where `go_to` went; no host-device sync, and a CUDA graph can hold it where
        the images lie on the device."""
        images, draw = self.seen()
        if self.augmentation is not None:
            after = self.augmented(images, draw)
            if after.is_floating_point():
                after = after.round().clamp_(0, BRIGHTEST)
            images = after.to(torch.uint8).permute(0, 2, 3, 1).contiguous()
        labels = self.images.labels.index_select(0, draw["rows"])
        return Batch(normalised(images), labels, draw["whose"], draw.get("domains"))

    def seen(self) -> tuple[Tensor, Draw]:
        """The batch's images before augmentation, uint8 [n, h, w, 3] (features, tokens: [n, …]),
        and its draw."""
        draw = {name: x.index_select(0, self._place)[0] for name, x in self._held.items()}
        look = Look(*map(draw.get, Look._fields))  # type: ignore[arg-type]
        if self._reader is None:
            read = self.images.read(look)
        else:
            read = sent(self._ahead[min(self._ahead)].result(), self.images.device)
        return self.images.finish(read, look), draw

    def augmented(self, images: Tensor, draw: Draw) -> Tensor:
        """What the augmentation gives for them: [n, 3, h, w], of any type."""
        assert self.augmentation is not None
        before = images.permute(0, 3, 1, 2)
        if not self.draws_by_seed:
            return self.augmentation.of(before, draw["chance"])  # type: ignore[no-any-return]
        with torch.random.fork_rng([images.device] if images.is_cuda else []):
            torch.manual_seed(self._seed)
            return self.augmentation.of(before)  # type: ignore[no-any-return]

    def draw(self, block: int) -> Draw:
        """What is random of iterations 100·block to 100·block + 99, on the host.

        rows [100, n] and, where there are any, turns, corners, keys, levels: as in `Look`. whose
        [100, n]: the domain of each example, of the K that train. domains [100, M], ascending:
        those that were drawn of more. chance, for the augmentation: float32 [100, n, numbers], or
        int64 [100, n], whose first number seeds torch for a batch.
        """
        count, size = len(self.trained), (BLOCK, self.share)
        domains = np.broadcast_to(np.arange(count), (BLOCK, count))
        if self.drawn < count:
            order = stream(self.seed, "domains", block).random(domains.shape).argsort(axis=1)
            domains = np.sort(order[:, : self.drawn], axis=1)
        each_batch = np.arange(BLOCK)[:, None]

        def own(values: np.ndarray) -> Tensor:
            """[100, M, m, …] -> [100, n, …], this process's."""
            rows = values.reshape(BLOCK, -1, *values.shape[3:])[:, self._own]
            return torch.from_numpy(rows.copy())

        def each(purpose: str, draw: Callable[[np.random.Generator, Part], np.ndarray]) -> Tensor:
            """What each domain's stream gives, of the domains and examples that are taken."""
            streams = [stream(self.seed, f"{purpose}/{name}", block) for name in self.trained]
            values = [draw(*pair) for pair in zip(streams, self.parts, strict=True)]
            return own(np.stack(values, axis=1)[each_batch, domains])

        whose = own(np.broadcast_to(domains[:, :, None], (*domains.shape, self.share)))
        examples = each("batches", lambda random, part: random.integers(len(part), size=size))
        examples += torch.tensor([0, *map(len, self.parts)]).cumsum(0)[whose]
        drawn = {"whose": whose, "rows": torch.cat([part.rows for part in self.parts])[examples]}
        if any(part.turns is not None for part in self.parts):
            turns = [torch.zeros_like(p.rows) if p.turns is None else p.turns for p in self.parts]
            drawn["turns"] = torch.cat(turns)[examples]
        if self.images.variants is not None and any(self.images.variants.margin):
            ends = self.images.variants.margin
            drawn["corners"] = each(
                "crops", lambda random, _: random.integers(ends, size=(*size, 2), endpoint=True)
            )
        if any(part.keys is not None for part in self.parts):
            drawn["keys"] = each("noise", lambda random, _: random.integers(2**63, size=size))
            drawn["levels"] = torch.tensor([part.level for part in self.parts])[whose]
        if self.drawn < count:
            drawn["domains"] = torch.from_numpy(domains)
        if self.augmentation is not None and (numbers := self.augmentation.numbers) is not None:
            shape = (*size, numbers)
            drawn["chance"] = each("augmentation", lambda r, _: r.random(shape, dtype=np.float32))
        elif self.draws_by_seed:
            drawn["chance"] = each("augmentation", lambda r, _: r.integers(2**63, size=size))
        return drawn

    def _read(self, iteration: int) -> Tensor:
        """On a thread: the stored images of an iteration, in memory that the device copies from."""
        block, place = divmod(iteration, BLOCK)
        draw = {name: values[place] for name, values in self.draw_once(block).items()}
        read = self.images.read(Look(*map(draw.get, Look._fields)))  # type: ignore[arg-type]
        return read.pin_memory() if self.images.device.type == "cuda" else read


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on `device`. To CUDA it goes from pinned memory: from any other the copy would
    make the host wait until all work before it is done."""
    if device.type == "cuda" and not tensor.is_cuda and not tensor.is_pinned():
        tensor = tensor.contiguous().pin_memory()
    return tensor.to(device, non_blocking=True)
