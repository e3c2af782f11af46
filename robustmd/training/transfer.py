"""From the host to the device without waiting for it."""

from __future__ import annotations

import torch


def sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor on `device`, itself if it is there.

    To CUDA it goes from pinned memory: from any other the copy would make the host wait until all
    work before it is done. torch keeps the pinned copy until it was read, and then uses it again.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
