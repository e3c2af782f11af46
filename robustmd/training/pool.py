"""The training examples of all domains, and the batches made of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch

from robustmd.training.batches import Draw
from robustmd.training.gathering import Shelf, may_share, normalised
from robustmd.training.resident import ResidentExamples
from robustmd.training.transfer import sent


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
