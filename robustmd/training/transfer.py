"""From the host to the device without waiting for it."""

from __future__ import annotations

import torch


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
