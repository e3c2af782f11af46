"""Models without numbers, and what settings change: input scale, dropout, what is frozen.

Hooks, so that the names in its state dict stay those of the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


def without_numbers(build: Callable[[], nn.Module]) -> nn.Module:
    """The model that `build` gives with shapes alone, on the device "meta": without memory, and
    without a number drawn."""
    with torch.random.fork_rng(devices=[]):
        try:
            with torch.device("meta"):
                return build()
        except NotImplementedError:  # it reads numbers while it is built, as torchvision's RegNet
            with torch.device("cpu"):
                return build().to("meta")


def scale_input(model: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
    """Let a model that learned on (u − mean)/std, u = pixel/255, take x = (u − 0.5)/0.25.

    The two differ by an affine map of each channel,

        (u − mean)/std = x · 0.25/std + (0.5 − mean)/std,

    which comes first from now on. It is neither trained nor saved. It cannot be folded into the
    first convolution: that pads with 0, which must mean the mean colour.
    """
    means, stds = (torch.tensor(c).view(1, 3, 1, 1) for c in (mean, std))
    model.register_buffer("input_scale", 0.25 / stds, persistent=False)
    model.register_buffer("input_shift", (0.5 - means) / stds, persistent=False)
    model.register_forward_pre_hook(_scaled)


def _scaled(model: nn.Module, given: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.addcmul(model.input_shift, given[0], model.input_scale)  # type: ignore[arg-type]


def drop_out(model: nn.Module, head: str, share: float, *, only_head: bool = False) -> None:
    """Give the model's own dropout that probability; where it has none, drop inputs of its head.

    only_head: the latter in any case, for features that are not in training mode.
    """
    own = [m for m in model.modules() if isinstance(m, nn.Dropout) and m.p > 0]
    for module in own:
        module.p = share
    if only_head or not own:
        model.get_submodule(head).register_forward_pre_hook(
            lambda module, given: functional.dropout(given[0], share, module.training)
        )


def freeze_batch_norm(model: nn.Module) -> None:
    """Its statistics stay: it is in evaluation mode. What it learns beside them, it learns."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.eval()


def freeze_all_but(model: nn.Module, head: str) -> None:
    """Nothing but the head is trained, and nothing before it is random or changes."""
    model.requires_grad_(False).eval()
    model.get_submodule(head).requires_grad_(True).train()
