"""The state of the adversary in float64, where the device has it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def precise_dtype(device: torch.device) -> torch.dtype:
    """float64 where the device has it; MPS has not."""
    return torch.float32 if device.type == "mps" else torch.float64


def default_dtype() -> torch.dtype:
    """The most precise dtype of the device on which torch makes new tensors."""
    return precise_dtype(torch.get_default_device())


class PreciseModule(nn.Module):
    """A module that `.to()` moves but does not round.

    `model.half()` must not reach the sums of an adversary inside the model. Only a device without
    float64 makes them float32.
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        # A submodule gets its parent's function, which is careful already.
        return super()._apply(fn if isinstance(fn, _Careful) else _Careful(fn), recurse)


class _Careful:
    def __init__(self, fn: Callable[[Tensor], Tensor]) -> None:
        self.fn = fn

    def __call__(self, tensor: Tensor) -> Tensor:
        try:
            new = self.fn(tensor)
        except TypeError:  # MPS refuses float64
            return self.fn(tensor.float())
        return new if new.dtype == tensor.dtype else tensor.to(new.device)
