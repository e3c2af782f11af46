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

from robustmd.domains.domain_set import DomainSet, Split
from robustmd.domains.variants import BRIGHTEST, Look, Variants, keys_of_images
from robustmd.domains.views import SPLITS, Views
from robustmd.registry import Augmentation

BLOCK = 100  # iterations whose batches are drawn at once
AHEAD = 4  # batches read in advance where the images stay on the host
LARGEST_SHARE = 0.5  # of the device's free memory that images may take


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


@dataclass(frozen=True)
class Part:
    """One split of one domain. Its example p is the image rows[p // V] in its variant p % V.

    rows: int64 [n] of the array of images. views: how they are seen. turns: int64 [V]. level: where
    the noise of its σ begins. first: the first row of the array that the rows were counted in.
    noise: chooses the noise that each image is measured with. number: the domain's, of all K. ids:
    int64 [n·V], the stored image of each example, also where `rows` are of its features.
    """

    rows: np.ndarray
    views: Views
    turns: np.ndarray
    level: int
    first: int
    noise: int
    number: int
    ids: np.ndarray

    def __len__(self) -> int:
        return len(self.rows) * len(self.turns)


class Images:
    """All images in one array, on the device or, where they do not fit, mapped on the host; and
    which of them each split of each domain has.

    images: uint8 [N, H, W, 3], features float32 [N, …] or tokens int64 [N, …]. size: (H, W) of what
    is seen, or (…). labels: int64 [N] or float32 [N, L], on the device. absent: bool [K, C], the
    classes that a domain's loss leaves out; None: there are none. parts: split -> domain -> `Part`.

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
        self.are_images, self.files = domains.are_images, domains.files
        self.size, self.variants = tuple(self.images.shape[1:]), None
        if self.are_images:
            self.size = domains.image_size
            views = [split.views for domain in domains for split in domain.splits.values()]
            if any(one != Views() for one in views):
                self.variants = Variants(views, tuple(self.images.shape[1:3]), self.device)
        self.parts: dict[str, dict[str, Part]] = {split: {} for split in SPLITS}
        for number, domain in enumerate(domains):
            for split, examples in domain.splits.items():
                noise = int(stream(seed, f"measured noise/{split}/{domain.name}").integers(2**63))
                self.parts[split][domain.name] = self._part(examples, noise, number)

    def _part(self, split: Split, noise: int, number: int) -> Part:
        turns, level = np.zeros(1, dtype=np.int64), 0
        if self.variants is not None:
            turns = np.array([self.variants.turns[turn] for turn in split.views.variants])
            level = self.variants.levels[split.views.sigma]
        ids = split.rows.repeat(len(turns))
        return Part(split.rows, split.views, turns, level, split.first, noise, number, ids)

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

    def where(self) -> str | None:
        """Where the images are, in a line; None on a CPU."""
        if self.device.type == "cpu":
            return None
        size = f"images: {self.images.nbytes / 1e6:.0f} MB"
        if self.resident:
            return f"{size}, all on {self.device}"
        return (
            f"{size} would take more than {LARGEST_SHARE:.0%} of the free memory of {self.device}: "
            "they stay on the host, and batches are read ahead"
        )

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
        variants = len(part.turns)
        for some in chosen.split(size):
            stored, turn = some // variants, some % variants
            rows = torch.from_numpy(part.rows)[stored]
            look = Look(rows)
            if part.turns.any():
                look = look._replace(turns=torch.from_numpy(part.turns)[turn])
            if part.views.sigma:
                keys = keys_of_images(part.noise, (rows - part.first) * variants + turn)
                levels = torch.full_like(rows, part.level)
                look = look._replace(keys=keys, levels=levels)
            there = look.to(self.device)
            read = self.read(there if self.resident else look).to(self.device)
            yield normalised(self.finish(read, there)), self.labels[there.rows]


def masked(logits: Tensor, absent: Tensor | None) -> Tensor:
    """The logits [n, C] with −∞ for the classes that a domain does not have (bool [n, C] or [C]):
    they then have probability 0, and loss and gradient are those of a head without their rows."""
    return logits if absent is None else logits.masked_fill(absent, -torch.inf)


def _mapped(array: np.ndarray) -> Tensor:
    with warnings.catch_warnings():  # a read-only map is what we want; nothing here writes to it
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


class Draw(NamedTuple):
    """All that is random of one batch of n examples, or of several along a leading dimension.

    look:    which images, and how they are seen
    whose:   int64 [n], the domain of each example, of the K that train
    domains: int64 [M], ascending, those that were drawn; None: all K are there
    chance:  float32 [n, numbers] for the augmentation, or int64 [n], whose first number seeds torch
        for it; None: there is none
    """

    look: Look
    whose: Tensor
    domains: Tensor | None
    chance: Tensor | None

    def each(self, change: Callable[[Tensor], Tensor]) -> Draw:
        look = Look(*(None if x is None else change(x) for x in self.look))  # type: ignore[arg-type]
        rest = (None if x is None else change(x) for x in self[1:])  # type: ignore[arg-type]
        return Draw(look, *rest)  # type: ignore[arg-type]


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
        self.samples_domains = drawn < len(self.trained)
        self.augmentation, self._own = augmentation, slice(part[0], None, part[1])
        self.drawn_block = lru_cache(maxsize=3)(self.draw)
        self._block, self._seed = -1, 0
        self._held: Draw | None = None  # a block of draws, on the device
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
            drawn = self.drawn_block(block).each(lambda part: sent(part, self.images.device))
            if self._held is None:
                self._held = drawn.each(torch.clone)
            else:  # in place: a graph reads it there
                for held, new in zip(_flat(self._held), _flat(drawn), strict=True):
                    held.copy_(new)
            self._block = block
        self._place.fill_(place)
        chance = self.drawn_block(block).chance
        if chance is not None and self.draws_by_seed:
            self._seed = int(chance[place, 0])
        if self._reader is not None:
            for wanted in range(iteration, iteration + AHEAD):
                if wanted not in self._ahead:
                    self._ahead[wanted] = self._reader.submit(self._read, wanted)
            for old in [one for one in self._ahead if one < iteration]:
                del self._ahead[old]

    def gather(self) -> Batch:
        """The batch of where `go_to` went; no host-device sync, and a CUDA graph can hold it where
        the images lie on the device."""
        images, now = self.seen()
        if self.augmentation is not None:
            after = self.augmented(images, now)
            if after.is_floating_point():
                after = after.round().clamp_(0, BRIGHTEST)
            images = after.to(torch.uint8).permute(0, 2, 3, 1).contiguous()
        labels = self.images.labels.index_select(0, now.look.rows)
        return Batch(normalised(images), labels, now.whose, now.domains)

    def seen(self) -> tuple[Tensor, Draw]:
        """The batch's images before augmentation, uint8 [n, h, w, 3] (features, tokens: [n, …]),
        and its draw."""
        assert self._held is not None
        now = self._held.each(lambda part: part.index_select(0, self._place)[0])
        if self._reader is None:
            read = self.images.read(now.look)
        else:
            read = sent(self._ahead[min(self._ahead)].result(), self.images.device)
        return self.images.finish(read, now.look), now

    def augmented(self, images: Tensor, now: Draw) -> Tensor:
        """What the augmentation gives for them: [n, 3, h, w], of any type."""
        assert self.augmentation is not None
        before = images.permute(0, 3, 1, 2)
        if not self.draws_by_seed:
            return self.augmentation.of(before, now.chance)  # type: ignore[no-any-return]
        with torch.random.fork_rng([images.device] if images.is_cuda else []):
            torch.manual_seed(self._seed)
            return self.augmentation.of(before)  # type: ignore[no-any-return]

    @property
    def draws_by_seed(self) -> bool:
        """Whether the augmentation draws from torch's own generators, seeded for each batch."""
        return self.augmentation is not None and self.augmentation.numbers is None

    def draw(self, block: int) -> Draw:
        """What is random of iterations 100·block to 100·block + 99, on the host."""
        kept: tuple[np.ndarray, np.ndarray] | slice = slice(None)
        domains = np.broadcast_to(np.arange(len(self.trained)), (BLOCK, len(self.trained)))
        if self.samples_domains:
            order = stream(self.seed, "domains", block).random(domains.shape).argsort(axis=1)
            domains = np.sort(order[:, : self.drawn], axis=1)
            kept = np.arange(BLOCK)[:, None], domains

        def each(purpose: str, draw: Callable[[np.random.Generator, Part], np.ndarray]) -> Tensor:
            """What each domain's stream gives, of the domains and examples that are taken."""
            streams = (stream(self.seed, f"{purpose}/{name}", block) for name in self.trained)
            drawn = [draw(*pair) for pair in zip(streams, self.parts, strict=True)]
            return flat(np.stack(drawn, axis=1)[kept])

        def flat(values: np.ndarray) -> Tensor:
            """[100, M, m, …] -> [100, n, …]"""
            rows = values.reshape(BLOCK, -1, *values.shape[3:])[:, self._own]
            return torch.from_numpy(rows.copy())

        whose = flat(np.broadcast_to(domains[:, :, None], (*domains.shape, self.share)))
        chance = each("augmentation", self._chance) if self.augmentation else None
        drawn = torch.from_numpy(domains) if self.samples_domains else None
        return Draw(self._look(each, whose), whose, drawn, chance)

    def _look(self, each: Callable[..., Tensor], whose: Tensor) -> Look:
        size, parts = (BLOCK, self.share), self.parts
        positions = each("batches", lambda random, part: random.integers(len(part), size=size))
        counts = torch.tensor([len(part.turns) for part in parts])[whose]
        begins = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
        stored = positions // counts + torch.from_numpy(begins)[whose]
        look = Look(torch.from_numpy(np.concatenate([part.rows for part in parts]))[stored])
        if any(part.turns.any() for part in parts):
            first = np.cumsum([0, *(len(part.turns) for part in parts[:-1])])
            turns = torch.from_numpy(np.concatenate([part.turns for part in parts]))
            look = look._replace(turns=turns[positions % counts + torch.from_numpy(first)[whose]])
        if self.images.variants is not None and any(self.images.variants.margin):
            ends = self.images.variants.margin
            corners = each(
                "crops",
                lambda random, _: random.integers(ends, size=(*size, 2), endpoint=True),
            )
            look = look._replace(corners=corners)
        if any(part.views.sigma for part in parts):
            keys = each("noise", lambda random, _: random.integers(2**63, size=size))
            levels = torch.tensor([part.level for part in parts])[whose]
            look = look._replace(keys=keys, levels=levels)
        return look

    def _chance(self, random: np.random.Generator, part: Part) -> np.ndarray:
        numbers = self.augmentation.numbers if self.augmentation else None
        if numbers is None:
            return random.integers(2**63, size=(BLOCK, self.share))
        return random.random((BLOCK, self.share, numbers), dtype=np.float32)

    def _read(self, iteration: int) -> Tensor:
        """On a thread: the stored images of an iteration, in memory that the device copies from."""
        block, place = divmod(iteration, BLOCK)
        look = self.drawn_block(block).each(lambda part: part[place]).look
        read = self.images.read(look)
        return read.pin_memory() if self.images.device.type == "cuda" else read


def _flat(draw: Draw) -> Iterator[Tensor]:
    return (part for part in (*draw.look, *draw[1:]) if isinstance(part, Tensor))


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on `device`. To CUDA it goes from pinned memory: from any other the copy would
    make the host wait until all work before it is done."""
    if device.type == "cuda" and not tensor.is_cuda and not tensor.is_pinned():
        tensor = tensor.contiguous().pin_memory()
    return tensor.to(device, non_blocking=True)
