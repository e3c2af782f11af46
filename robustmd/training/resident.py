"""Images where the model is: uint8 on the device once, gathered, seen and normalised there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import torch

from robustmd.domains.domain import SPLITS, DomainSet, Examples
from robustmd.domains.views import VARIANTS
from robustmd.training.augment import cropped, turned
from robustmd.training.batches import Draw
from robustmd.training.pixel_noise import keys_of_images, noise_table, with_noise
from robustmd.training.seeds import stream

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
    stay in the memory map and every gather copies what it takes of them.

    Args:
        examples: the split, n >= 1, with its views.
        device: where the model is.
        images: the same images, placed before for another split or domain.
        noise_start: 0 <= start < 2**63: chooses each image's own noise.
        absent: bool [C] on the device, the classes that play no part in the domain's loss and
            accuracy; given for all domains or none.
    """

    def __init__(
        self,
        examples: Examples,
        device: torch.device,
        images: torch.Tensor | None = None,
        noise_start: int = 0,
        absent: torch.Tensor | None = None,
    ) -> None:
        self.device, self.absent = device, absent
        self.images = _placed(_tensor(examples.images), device) if images is None else images
        self.labels = torch.from_numpy(np.asarray(examples.targets)).to(device)
        self.rows = None if examples.rows is None else _tensor(examples.rows)
        self._rows_there = None if self.rows is None else self.rows.to(self.images.device)

        self.image_size = height, width = examples.image_size
        margins = (examples.images.shape[1] - height, examples.images.shape[2] - width)
        self._is_cropped = margins != (0, 0)
        self._centre = torch.tensor([[margins[0] // 2, margins[1] // 2]], device=device)
        variants = examples.views.variants
        self.num_variants = len(variants)
        matrices = torch.tensor([VARIANTS[name] for name in variants], device=device)
        self._matrices = None if variants == ("identity",) else matrices
        sigma = examples.views.sigma
        self._noise_table = noise_table(sigma).to(device) if sigma > 0 else None
        self._noise_start = noise_start

    def __len__(self) -> int:
        return len(self.labels)

    def gather(
        self,
        positions: torch.Tensor,
        corners: torch.Tensor | None = None,
        noise_keys: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(uint8 [m, h, w, 3] images as they are seen, int64 [m] labels), on the device.

        The host does not wait for the device, unless the images are on the host.

        Args:
            positions: int64 [m], in the split.
            corners: int64 [m, 2], of the crops; None: in the centre.
            noise_keys: int64 [m], of the noise; None: each image's own.
        """
        places = positions.to(self.images.device, non_blocking=True)
        labels = self.labels[positions.to(self.device, non_blocking=True)]
        variants = places % self.num_variants
        stored = places if self.num_variants == 1 else places // self.num_variants
        rows = stored if self._rows_there is None else self._rows_there[stored]
        images = self._seen(rows, variants, corners)
        if self._noise_table is not None:
            if noise_keys is None:
                own = (rows * self.num_variants + variants).to(self.device, non_blocking=True)
                noise_keys = keys_of_images(self._noise_start, own)
            there = noise_keys.to(self.device, non_blocking=True)
            images = with_noise(images, there, self._noise_table)
        return images, labels

    def _seen(
        self, rows: torch.Tensor, variants: torch.Tensor, corners: torch.Tensor | None
    ) -> torch.Tensor:
        """The stored images in their variants, cropped: uint8 [m, h, w, 3] on the device."""
        if corners is None:
            corners = self._centre.expand(len(rows), 2)
        if self._matrices is not None:
            whole = self.images.index_select(0, rows).to(self.device, non_blocking=True)
            matrices = self._matrices[variants.to(self.device, non_blocking=True)]
            there = corners.to(self.device, non_blocking=True)
            return turned(whole, matrices, there, self.image_size)
        if self._is_cropped:
            there = corners.to(self.images.device, non_blocking=True)
            seen = cropped(self.images, rows, there, self.image_size[0])
        else:  # index_select copies whole images, several times faster than images[rows]
            seen = self.images.index_select(0, rows)
        return seen.to(self.device, non_blocking=True)

    def ids(self) -> torch.Tensor:
        """int64 [n], on the host: for each example the row of its image in the prepared arrays."""
        rows = torch.arange(len(self) // self.num_variants) if self.rows is None else self.rows
        return rows.repeat_interleave(self.num_variants)

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
    domains: DomainSet, device: torch.device, seed: int = 0
) -> dict[str, dict[str, ResidentExamples]]:
    """split -> domain -> examples, for the splits that there are.

    Splits and domains that share their images (a validation split, copies with noise) share them
    here as well. The seed chooses the noise that images are measured with.
    """
    splits: dict[str, dict[str, ResidentExamples]] = {split: {} for split in SPLITS}
    placed: dict[int, torch.Tensor] = {}
    absent = torch.from_numpy(domains.absent_classes()).to(device)
    any_absent = bool(absent.any())
    for k, domain in enumerate(domains):
        mask = absent[k] if any_absent else None
        for split in SPLITS:
            examples = domain.split(split)
            if examples is not None:
                there = placed.get(id(examples.images))
                noise = stream(seed, f"measured noise/{split}/{domain.name}").integers(2**63)
                resident = ResidentExamples(examples, device, there, int(noise), mask)
                placed[id(examples.images)] = resident.images
                splits[split][domain.name] = resident
    return splits


def absent_classes(domains: list[ResidentExamples]) -> torch.Tensor | None:
    """bool [K, C] on the device: the classes that each domain does not have; None: all have all."""
    masks = [domain.absent for domain in domains if domain.absent is not None]
    return torch.stack(masks) if masks else None


def gather_batch(domains: list[ResidentExamples], draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """One batch over all domains: float [K·m, 3, H, W] and int64 [K·m], domain by domain."""
    parts = [
        domain.gather(own.positions, own.corners, own.noise_keys)
        for domain, own in ((domain, draw[k]) for k, domain in enumerate(domains))
    ]
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
