"""The examples of all domains, and the batches made of them: from positions to images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import torch

from robustmd.domains.examples import matrix_of
from robustmd.training.batches import Draw
from robustmd.training.images import ResidentExamples, sent
from robustmd.training.pixels import (
    QUANTILES,
    cropped,
    keys_of_images,
    noise_table,
    normalised,
    turned,
    with_noise,
)


class TrainingPool:
    """K domains' training examples: one gather for every array that their images lie in.

    Args:
        splits: the domains that train, K ≥ 1, in order.
    """

    def __init__(self, splits: Sequence[ResidentExamples]) -> None:
        groups: list[list[ResidentExamples]] = []
        for split in splits:  # neighbours only, so that a batch keeps the domains' order
            if groups and may_share(groups[-1][-1], split):
                groups[-1].append(split)
            else:
                groups.append([split])
        self.shelves = [Shelf(group) for group in groups]
        self._bounds = [0, *accumulate(len(group) for group in groups)]  # of the shelves' domains
        masks = [split.absent for split in splits if split.absent is not None]
        self._absent = torch.stack(masks) if masks else None
        self.num_domains = len(splits)
        self.device = splits[0].device

    @property
    def resident(self) -> bool:
        """Do all images lie on the device?"""
        return all(shelf.images.device == self.device for shelf in self.shelves)

    def gather(self, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        """One batch: float [M·m, 3, H, W] and int64 [M·m], domain by domain.

        Where there are several shelves, a draw of some of the domains must be on the host, which
        decides by it which of them to read.
        """
        bounds = self._bounds_in(draw)
        parts = [
            self._part(shelf, draw[first:last])
            for shelf, (first, last) in enumerate(pairwise(bounds))
            if first < last
        ]
        images = torch.cat([images for images, _ in parts])
        return normalised(images), torch.cat([labels for _, labels in parts])

    def absent_classes(self, draw: Draw) -> torch.Tensor | None:
        """bool [M, C]: the classes that the drawn domains do not have; None: all have all."""
        if self._absent is None or draw.domains is None:
            return self._absent
        return self._absent[sent(draw.domains, self.device)]

    def _bounds_in(self, draw: Draw) -> list[int]:
        """Where in the draw each shelf's domains begin, and the end."""
        if draw.domains is None:
            return self._bounds
        if len(self.shelves) == 1:
            return [0, len(draw.domains)]
        return torch.searchsorted(draw.domains, torch.tensor(self._bounds)).tolist()

    def _part(self, shelf: int, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        """A shelf's images and labels: what `draw` has of its domains."""
        first, last = self._bounds[shelf : shelf + 2]
        whose = None
        if last - first > 1:
            on_shelf = torch.arange(last - first, device=draw.positions.device)
            if draw.domains is not None:
                on_shelf = draw.domains - first
            whose = on_shelf[:, None].expand_as(draw.positions).flatten()
        corners = None if draw.corners is None else draw.corners.flatten(0, 1)
        keys = None if draw.noise_keys is None else draw.noise_keys.flatten()
        return self.shelves[shelf].gather(draw.positions.flatten(), whose, corners, keys)


class Shelf:
    """Domains whose images lie in one array, so that one gather serves them all.

    Args:
        splits: G ≥ 1 splits that `may_share`; what they are numbered by here is their order.
    """

    def __init__(self, splits: Sequence[ResidentExamples]) -> None:
        first = splits[0]
        self.images, self.device, self.image_size = first.images, first.device, first.image_size
        there = self.images.device
        self._variants = len(first.views.variants)
        before = torch.tensor([0, *(s.stored for s in splits)]).cumsum(0)[:-1]
        self._offsets = before.to(there)  # [G], how many stored images the splits before have
        self._labels = torch.cat([split.labels for split in splits])
        self._rows = _all_rows(splits)

        margins = [
            n - seen for n, seen in zip(self.images.shape[1:3], self.image_size, strict=True)
        ]
        self._is_cropped = any(margins)
        self._centre = torch.tensor([[margin // 2 for margin in margins]], device=there)
        names = [name for split in splits for name in split.views.variants]
        turns = torch.tensor([matrix_of(name) for name in names], device=self.device)
        self._matrices = None if set(names) == {"identity"} else turns  # [G·V, 4]

        sigmas = [split.views.sigma for split in splits]
        levels = sorted(set(sigmas))
        tables = torch.cat([noise_table(sigma) for sigma in levels]) if any(sigmas) else None
        self._tables = None if tables is None else tables.to(self.device)
        starts = torch.tensor([levels.index(sigma) * QUANTILES for sigma in sigmas])
        self._table_starts = starts.to(self.device)  # [G], where each domain's table begins
        self._noise_starts = torch.tensor([s.noise_start for s in splits]).to(self.device)

    def gather(
        self,
        positions: torch.Tensor,
        whose: torch.Tensor | None = None,
        corners: torch.Tensor | None = None,
        noise_keys: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(uint8 [n, h, w, 3] images as they are seen, int64 [n] labels), on the device.

        The host does not wait for the device.

        Args:
            positions: int64 [n], each in its domain's split.
            whose: int64 [n], the domains' numbers on this shelf; None: all of domain 0.
            corners: int64 [n, 2], of the crops; None: in the centre.
            noise_keys: int64 [n], of the noise; None: each image's own.
        """
        there = self.images.device
        positions = sent(positions, there)
        whose = None if whose is None else sent(whose, there)
        variants = positions % self._variants
        stored = positions if self._variants == 1 else positions // self._variants
        offset = 0 if whose is None else self._offsets[whose]
        rows = stored if self._rows is None else self._rows[stored + offset]
        images = self._seen(rows, self._variant_of(variants, whose), corners)
        if self._tables is not None:
            mine = None if whose is None else sent(whose, self.device)
            if noise_keys is None:
                own = sent(rows * self._variants + variants, self.device)
                noise_keys = keys_of_images(self._noise_starts[0 if mine is None else mine], own)
            starts = None if mine is None else self._table_starts[mine]
            images = with_noise(images, sent(noise_keys, self.device), self._tables, starts)
        return images, self._labels[sent(positions + offset * self._variants, self.device)]

    def _variant_of(self, variants: torch.Tensor, whose: torch.Tensor | None) -> torch.Tensor:
        """int64 [n]: places in the table of matrices."""
        return variants if whose is None else variants + whose * self._variants

    def _seen(
        self, rows: torch.Tensor, variants: torch.Tensor, corners: torch.Tensor | None
    ) -> torch.Tensor:
        """The stored images in their variants, cropped: uint8 [n, h, w, 3] on the device."""
        if corners is None:
            corners = self._centre.expand(len(rows), 2)
        if self._matrices is not None:
            whole = sent(self.images.index_select(0, rows), self.device)
            matrices = self._matrices[sent(variants, self.device)]
            return turned(whole, matrices, sent(corners, self.device), self.image_size)
        if self._is_cropped:
            corners = sent(corners, self.images.device)
            seen = cropped(self.images, rows, corners, self.image_size[0])
        else:  # index_select copies whole images, several times faster than images[rows]
            seen = self.images.index_select(0, rows)
        return sent(seen, self.device)


def may_share(one: ResidentExamples, other: ResidentExamples) -> bool:
    """May the two be on one shelf? They may differ in rows, turns and noise."""
    same = one.images is other.images and one.image_size == other.image_size
    return same and len(one.views.variants) == len(other.views.variants)


def chunks(
    split: ResidentExamples, size: int, positions: torch.Tensor | None = None
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """A split (or the given positions of it) in order, `size` at a time: normalised, labels."""
    if positions is None:
        positions = torch.arange(len(split))
    shelf = Shelf([split])
    for part in positions.split(size):
        images, labels = shelf.gather(part)
        yield normalised(images), labels


def _all_rows(splits: Sequence[ResidentExamples]) -> torch.Tensor | None:
    """Every split's rows one after another, where the images are; None: each is all images."""
    if all(split.rows is None for split in splits):
        return None
    rows = [torch.arange(s.stored) if s.rows is None else s.rows for s in splits]
    return torch.cat(rows).to(splits[0].images.device)
