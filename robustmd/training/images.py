"""Images where the model is: uint8 on the device once, or on the host where they do not fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import torch

from robustmd.domains.domain import SPLITS, DomainSet, Examples
from robustmd.training.seeds import stream

LARGEST_SHARE = 0.5  # of the device's free memory that images may take


class ResidentExamples:
    """One split of one domain, ready to be gathered on the device (see pool.py).

    The uint8 images lie on the device where they fit in half of its free memory; elsewhere they
    stay in the memory map and every gather copies what it takes of them, through pinned memory.

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
        self.absent, self.noise_start = absent, noise_start
        self.images = _placed(_tensor(examples.images), device) if images is None else images
        self.labels = torch.from_numpy(np.asarray(examples.targets)).to(device)
        self.device = self.labels.device  # "cuda" as its tensors name it: "cuda:0"
        self.rows = None if examples.rows is None else _tensor(examples.rows)
        self.views, self.stored = examples.views, examples.stored
        self.image_size = examples.image_size

    def __len__(self) -> int:
        return len(self.labels)

    def ids(self) -> torch.Tensor:
        """int64 [n], on the host: for each example the row of its image in the prepared arrays."""
        rows = torch.arange(self.stored) if self.rows is None else self.rows
        return rows.repeat_interleave(len(self.views.variants))


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


def where_images_are(splits: Mapping[str, Mapping[str, ResidentExamples]]) -> str | None:
    """Which images are on the device and which are too many for it, in a line; None on a CPU."""
    bytes_of: dict[bool, dict[int, int]] = {True: {}, False: {}}  # resident? -> array -> bytes
    device = None
    for domains in splits.values():
        for split in domains.values():
            device = split.device
            images = split.images
            bytes_of[images.device == device][id(images)] = images.numel()
    if device is None or device.type == "cpu":
        return None
    there, here = (sum(bytes_of[resident].values()) / 1e6 for resident in (True, False))
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
        if images.numel() > LARGEST_SHARE * free:
            return images
    return images.to(device)


def sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor on `device`, itself if it is there.

    To CUDA it goes from pinned memory: from any other the copy would make the host wait until all
    work before it is done. torch keeps the pinned copy until it was read, and then uses it again.
    Where no (more) memory can be pinned, the host waits.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        try:
            tensor = tensor.pin_memory()
        except RuntimeError:
            return tensor.to(device)
    return tensor.to(device, non_blocking=True)


def why_not_pinned() -> str | None:
    """Why the host's memory cannot be pinned here; None: it can."""
    try:
        torch.empty(1).pin_memory()
    except RuntimeError as error:
        return str(error).strip().partition("\n")[0]
    return None
