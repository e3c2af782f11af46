"""The examples of all domains where the model is, and the batches made of them.

Images are uint8, on the device once; where they do not fit they stay in the memory map on the host,
and every gather copies what it takes of them through pinned memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch

from robustmd.domains.domain import SPLITS, DomainSet, Examples
from robustmd.domains.examples import matrix_of
from robustmd.errors import UserError
from robustmd.registry import Augmentation
from robustmd.training import pixels
from robustmd.training.batches import Draw, sent, stream

LARGEST_SHARE = 0.5  # of the device's free memory that images may take
Batch = tuple[torch.Tensor, torch.Tensor]  # images and their labels


class ResidentExamples:
    """One split of one domain, ready to be gathered on the device.

    images: the same images, placed before for another split or domain. noise_start: 0 <= start <
    2**63, chooses each image's own noise. absent: bool [C] on the device, the classes that play no
    part in the domain's loss and accuracy; given for all domains or none. ids: int64 [n], on the
    host: for each example the row of its image in the prepared arrays.
    """

    def __init__(
        self,
        examples: Examples,
        device: torch.device,
        images: torch.Tensor | None = None,
        noise_start: int = 0,
        absent: torch.Tensor | None = None,
    ) -> None:
        self.absent, self.noise_start = absent, noise_start
        self.images = _placed(_tensor(examples.images), device) if images is None else images
        self.labels = torch.from_numpy(np.asarray(examples.targets)).to(device)
        self.device = self.labels.device  # "cuda" as its tensors name it: "cuda:0"
        rows = np.arange(examples.stored) if examples.rows is None else examples.rows
        self.rows = _tensor(np.asarray(rows, dtype=np.int64))
        self.views, self.image_size = examples.views, examples.image_size
        self.files = examples.files
        self.ids = self.rows.repeat_interleave(len(self.views.variants))

    def __len__(self) -> int:
        return len(self.labels)


Splits = Mapping[str, Mapping[str, ResidentExamples]]  # split -> domain -> examples


def resident_splits(
    domains: DomainSet, device: torch.device, seed: int = 0
) -> dict[str, dict[str, ResidentExamples]]:
    """split -> domain -> examples. Those that share their images (a validation split, copies with
    noise) share them here as well. The seed chooses the noise that images are measured with."""
    splits: dict[str, dict[str, ResidentExamples]] = {split: {} for split in SPLITS}
    placed: dict[int, torch.Tensor] = {}
    absent = domains.absent_classes()
    masks = list(torch.from_numpy(absent).to(device)) if absent.any() else [None] * len(domains)
    for domain, mask in zip(domains, masks, strict=True):
        for split, examples in domain.splits.items():
            there = placed.get(id(examples.images))
            noise = stream(seed, f"measured noise/{split}/{domain.name}").integers(2**63)
            resident = ResidentExamples(examples, device, there, int(noise), mask)
            placed[id(examples.images)] = resident.images
            splits[split][domain.name] = resident
    return splits


def where_images_are(splits: Splits) -> str | None:
    """Which images are on the device and which are too many for it, in a line; None on a CPU."""
    examples = [one for domains in splits.values() for one in domains.values()]
    device = examples[0].device
    if device.type == "cpu":
        return None
    arrays = {id(one.images): one.images for one in examples}.values()
    here = sum(images.nbytes for images in arrays if images.device != device) / 1e6
    there = sum(images.nbytes for images in arrays) / 1e6 - here
    if not here:
        return f"images: {there:.0f} MB, all on {device}"
    return (
        f"images: {there:.0f} MB on {device}; {here:.0f} MB would take more than "
        f"{LARGEST_SHARE:.0%} of its free memory: they stay on the host, and each batch is copied"
    )


def _tensor(array: np.ndarray) -> torch.Tensor:
    with warnings.catch_warnings():  # a read-only map is what we want; nothing here writes to it
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _placed(images: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The images on the device, or where they are if they would take too much of its memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if images.nbytes > LARGEST_SHARE * free:
            return images
    return images.to(device)


class TrainingPool:
    """K domains' training examples: one gather for every array that their images lie in.

    counts: [K], how many examples a draw has of each; None: equal numbers.
    """

    def __init__(
        self,
        splits: Sequence[ResidentExamples],
        counts: list[int] | None = None,
        augmentation: Augmentation | None = None,
    ) -> None:
        self.augmentation = augmentation
        groups: list[list[ResidentExamples]] = []
        for split in splits:  # neighbours only, so that a batch keeps the domains' order
            if groups and _may_share(groups[-1][-1], split):
                groups[-1].append(split)
            else:
                groups.append([split])
        self.shelves = [Shelf(group) for group in groups]
        self.device = splits[0].device
        self._first = [0, *accumulate(map(len, groups))]  # of each shelf's domains, and the end
        # Whose the rows of a draw of all domains are: [K], or by `counts` an example a row.
        everybody = torch.arange(len(splits)).repeat_interleave(torch.tensor(counts or 1))
        self._bounds = self._bounds_in(everybody)
        self._everybody = everybody.to(self.device if self.resident else "cpu")
        masks = [split.absent for split in splits if split.absent is not None]
        self._absent = torch.stack(masks) if masks else None

    @property
    def resident(self) -> bool:
        """Do all images lie on the device?"""
        return all(shelf.images.device == self.device for shelf in self.shelves)

    def gather(self, draw: Draw) -> Batch:
        """One batch: float [M·m, 3, H, W] and int64 [M·m], domain by domain.

        Where there are several shelves, a draw of some of the domains must be on the host, which
        decides by it which of them to read.
        """
        if draw.domains is None:
            draw, bounds = draw._replace(domains=self._everybody), self._bounds
        else:
            bounds = self._bounds_in(draw.domains)
        parts = [
            self._part(number, draw.at(slice(first, last)))
            for number, (first, last) in enumerate(pairwise(bounds))
            if first < last
        ]
        images, labels = (torch.cat(of_all) for of_all in zip(*parts, strict=True))
        if self.augmentation is not None and draw.chance is not None:
            images = augmented(images, self.augmentation, draw.chance)
        return pixels.normalised(images), labels

    def absent_classes(self, draw: Draw) -> torch.Tensor | None:
        """bool [rows, C]: the classes that a row's domain does not have; None: all have all."""
        if self._absent is None:
            return None
        domains = self._everybody if draw.domains is None else draw.domains
        return self._absent[sent(domains, self.device)]

    def _bounds_in(self, domains: torch.Tensor) -> list[int]:
        """Where in them each shelf's rows begin, and the end."""
        if len(self.shelves) == 1:
            return [0, len(domains)]
        return torch.searchsorted(domains, torch.tensor(self._first)).tolist()

    def _part(self, number: int, draw: Draw) -> Batch:
        """A shelf's images and labels: what `draw` has of its domains."""
        assert draw.domains is not None
        whose = (draw.domains - self._first[number])[:, None].expand_as(draw.positions).flatten()
        corners = None if draw.corners is None else draw.corners.flatten(0, 1)
        keys = None if draw.noise_keys is None else draw.noise_keys.flatten()
        return self.shelves[number].gather(draw.positions.flatten(), whose, corners, keys)


def augmented(
    images: torch.Tensor, augmentation: Augmentation, chance: torch.Tensor
) -> torch.Tensor:
    """uint8 [n, H, W, 3] from images of that type and shape; chance: of a `Draw`.

    Raises UserError where images of another shape come back.
    """
    before = images.permute(0, 3, 1, 2)
    if augmentation.numbers is not None:
        numbers = sent(chance.flatten(0, -2), images.device)
        after = augmentation.of(before, numbers)
    else:
        with torch.random.fork_rng([images.device] if images.is_cuda else []):
            torch.manual_seed(int(chance.flatten()[0]))
            after = augmentation.of(before)
    if after.shape != before.shape:
        raise UserError(
            f"data.augment={augmentation.name}: makes images {list(after.shape)} of "
            f"{list(before.shape)}; the shape must stay"
        )
    if after.is_floating_point():
        after = after.round().clamp_(0, pixels.BRIGHTEST)
    return after.to(torch.uint8).permute(0, 2, 3, 1).contiguous()


class Shelf:
    """G ≥ 1 domains whose images lie in one array, so that one gather serves them all: of one size
    and number of variants; they may differ in rows, turns and noise."""

    def __init__(self, splits: Sequence[ResidentExamples]) -> None:
        first = splits[0]
        self.images, self.device, self.image_size = first.images, first.device, first.image_size
        there = self.images.device
        self._variants = len(first.views.variants)
        before = torch.tensor([0, *(len(s.rows) for s in splits)]).cumsum(0)[:-1]
        self._offsets = before.to(there)  # [G], how many stored images the splits before have
        self._labels = torch.cat([split.labels for split in splits])
        self._rows = torch.cat([split.rows for split in splits]).to(there)

        height, width = self.images.shape[1:3]
        margins = height - self.image_size[0], width - self.image_size[1]
        self._is_cropped = any(margins)
        self._centre = torch.tensor([[margin // 2 for margin in margins]], device=there)
        names = [name for split in splits for name in split.views.variants]
        kinds = list(dict.fromkeys(names))
        self._kinds = torch.tensor([kinds.index(name) for name in names], device=self.device)
        self._is_turned = kinds != ["identity"]
        self._matrices = torch.tensor([matrix_of(name) for name in kinds], device=self.device)
        if self._is_turned:  # once where the part that is kept is always the same
            self._places = self._turned_places(self._matrices, self._centre)

        sigmas = [split.views.sigma for split in splits]
        levels = sorted(set(sigmas))
        self._tables = None
        if any(sigmas):
            self._tables = torch.cat([pixels.noise_table(s) for s in levels]).to(self.device)
        starts = torch.tensor([levels.index(sigma) * pixels.QUANTILES for sigma in sigmas])
        self._table_starts = starts.to(self.device)  # [G], where each domain's table begins
        self._noise_starts = torch.tensor([s.noise_start for s in splits]).to(self.device)

    def gather(
        self,
        positions: torch.Tensor,
        whose: torch.Tensor | None = None,
        corners: torch.Tensor | None = None,
        noise_keys: torch.Tensor | None = None,
    ) -> Batch:
        """uint8 [n, h, w, 3] images as they are seen and their labels, on the device, for which the
        host does not wait.

        Args:
            positions: int64 [n], each in its domain's split.
            whose: int64 [n], the domains' numbers on this shelf; None: all of number 0.
            corners: int64 [n, 2], of the crops; None: in the centre.
            noise_keys: int64 [n], of the noise; None: each image's own.
        """
        there = self.images.device
        positions = sent(positions, there)
        mine = torch.zeros_like(positions) if whose is None else sent(whose, there)
        offset = self._offsets[mine]
        variants = positions % self._variants
        rows = self._rows[positions // self._variants + offset]
        images = self._seen(rows, variants + mine * self._variants, corners)
        if self._tables is not None:
            mine = sent(mine, self.device)
            if noise_keys is None:
                own = sent(rows * self._variants + variants, self.device)
                noise_keys = pixels.keys_of_images(self._noise_starts[mine], own)
            noise_keys = sent(noise_keys, self.device)
            starts = self._table_starts[mine] if len(self._table_starts) > 1 else None
            images = pixels.with_noise(images, noise_keys, self._tables, starts)
        return images, self._labels[sent(positions + offset * self._variants, self.device)]

    def _seen(
        self, rows: torch.Tensor, variants: torch.Tensor, corners: torch.Tensor | None
    ) -> torch.Tensor:
        """The stored images, each turned as its variant says, and cropped: uint8 [n, h, w, 3] on
        the device."""
        if self._is_turned:
            kinds = self._kinds[sent(variants, self.device)]
            if corners is None:
                places, inside = (part.index_select(0, kinds) for part in self._places)
            else:
                places, inside = self._turned_places(self._matrices[kinds], corners)
            whole = sent(self.images.index_select(0, rows), self.device)
            return pixels.turned(whole, places, inside)
        if self._is_cropped:
            corners = self._centre.expand(len(rows), 2) if corners is None else corners
            corners = sent(corners, self.images.device)
            images = pixels.cropped(self.images, rows, corners, self.image_size[0])
        else:  # index_select copies whole images, several times faster than images[rows]
            images = self.images.index_select(0, rows)
        return sent(images, self.device)

    def _turned_places(
        self, matrices: torch.Tensor, corners: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        corners = sent(corners, self.device).expand(len(matrices), 2)
        return pixels.turned_places(matrices, corners, self.image_size, self.images.shape[1:3])


def _may_share(one: ResidentExamples, other: ResidentExamples) -> bool:
    same = one.images is other.images and one.image_size == other.image_size
    return same and len(one.views.variants) == len(other.views.variants)


def chunks(
    split: ResidentExamples, size: int, positions: torch.Tensor | None = None
) -> Iterator[Batch]:
    """A split (or the given positions of it) in order, `size` at a time: normalised, labels."""
    if positions is None:
        positions = torch.arange(len(split))
    shelf = Shelf([split])
    for part in positions.split(size):
        images, labels = shelf.gather(part)
        yield pixels.normalised(images), labels
