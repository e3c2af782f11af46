"""Images where the model is: uint8 on the device once, gathered and normalised there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import torch

from robustmd.domains.domain import SPLITS, DomainSet, Examples

LARGEST_SHARE = 0.5  # of the device's free memory that images may take


def normalised(images: torch.Tensor, device: torch.device) -> torch.Tensor:
    """uint8 [n, H, W, 3] -> float32 [n, 3, H, W], channels last in memory.

    x ↦ (x/255 − 0.5)/0.25, the same for every domain, so in [−2, 2]. The paper does not say; with
    [−1, 1] a network without batch norm stays at its starting loss for hundreds of iterations.
    """
    return images.to(device, non_blocking=True).permute(0, 3, 1, 2).float().div_(63.75).sub_(2.0)


class ResidentExamples:
    """One split of one domain, ready to be gathered on the device.

    The uint8 images lie on the device where they fit in half of its free memory; elsewhere they
    stay in the memory map and every gather copies its rows.

    Args:
        examples: the split, n >= 1.
        device: where the model is.
        images: the same images, placed before for another split of the domain.
    """

    def __init__(
        self, examples: Examples, device: torch.device, images: torch.Tensor | None = None
    ) -> None:
        self.device = device
        self.images = _placed(_tensor(examples.images), device) if images is None else images
        self.labels = torch.from_numpy(np.asarray(examples.targets)).to(device)
        self.rows = None if examples.rows is None else _tensor(examples.rows)
        self._rows_there = None if self.rows is None else self.rows.to(self.images.device)

    def __len__(self) -> int:
        return len(self.labels)

    def gather(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(uint8 [m, H, W, 3] images, int64 [m] labels) on the device for int64 [m] positions."""
        places = positions.to(self.images.device, non_blocking=True)
        labels = self.labels[positions.to(self.device, non_blocking=True)]
        rows = places if self._rows_there is None else self._rows_there[places]
        return self.images[rows].to(self.device, non_blocking=True), labels

    def chunks(
        self, size: int, positions: torch.Tensor | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The split (or the given positions of it) in order, `size` at a time: images, labels."""
        if positions is None:
            positions = torch.arange(len(self))
        for part in positions.split(size):
            images, labels = self.gather(part)
            yield normalised(images, self.device), labels


def resident_splits(
    domains: DomainSet, device: torch.device
) -> dict[str, dict[str, ResidentExamples]]:
    """split -> domain -> examples, for the splits that there are.

    A validation split shares its images with the training split; they are placed once.
    """
    splits: dict[str, dict[str, ResidentExamples]] = {split: {} for split in SPLITS}
    placed: dict[int, torch.Tensor] = {}
    for domain in domains:
        for split in SPLITS:
            examples = domain.split(split)
            if examples is not None:
                there = placed.get(id(examples.images))
                resident = ResidentExamples(examples, device, there)
                placed[id(examples.images)] = resident.images
                splits[split][domain.name] = resident
    return splits


def gather_batch(
    domains: list[ResidentExamples], positions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One batch over all domains: float [K·m, 3, H, W] and int64 [K·m], domain by domain."""
    parts = [d.gather(where) for d, where in zip(domains, positions, strict=True)]
    images = torch.cat([images for images, _ in parts])
    return normalised(images, images.device), torch.cat([labels for _, labels in parts])


def _tensor(array: np.ndarray) -> torch.Tensor:
    with warnings.catch_warnings():  # a read-only map is what we want; nothing here writes to it
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _placed(images: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The images on the device, or where they are if they would take too much of its memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if images.numel() > LARGEST_SHARE * free:
            return images
    return images.to(device)
