"""How settings change a model: its input's scale, its dropout, and what is frozen.

Hooks make the changes, so that the names in the model's state dict stay its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


def without_numbers(build: Callable[[], nn.Module]) -> nn.Module:
    """The model that `build` returns, on the device "meta": it has shapes but takes no memory, and
    torch's generator does not advance."""
    with torch.random.fork_rng(devices=[]):
        try:
            with torch.device("meta"):
                return build()
        except NotImplementedError:  # torchvision's RegNet reads numbers while it is built
            with torch.device("cpu"):
                return build().to("meta")


def scale_input(model: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
    """Let a model that learned on (u − mean)/std, u = pixel/255, take x = (u − 0.5)/0.25.

    The two differ by an affine map of each channel,

        (u − mean)/std = x · 0.25/std + (0.5 − mean)/std,

    which a hook applies first. It is neither trained nor saved. It cannot be folded into the first
    convolution: that pads with 0, which must mean the mean colour.
    """
    means, stds = (torch.tensor(values).view(1, 3, 1, 1) for values in (mean, std))
    model.register_buffer("input_scale", 0.25 / stds, persistent=False)
    model.register_buffer("input_shift", (0.5 - means) / stds, persistent=False)
    model.register_forward_pre_hook(_scale)


def _scale(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.addcmul(model.input_shift, inputs[0], model.input_scale)  # type: ignore[arg-type]


def apply_changes(model: nn.Module, settings: Any, find_head: Callable[[], str]) -> None:
    """Make the changes of `backbone.dropout`, `freeze_bn` and `freeze`.

    Dropout is that of the model's own layers; a model without any, and one with frozen features,
    drops its head's inputs. Frozen batch norm keeps its statistics; its scale and shift learn.
    """
    frozen = settings.freeze == "features"
    if settings.dropout is not None:
        layers = [m for m in model.modules() if isinstance(m, nn.Dropout) and m.p > 0]
        for layer in layers:
            layer.p = settings.dropout
        if frozen or not layers:
            model.get_submodule(find_head()).register_forward_pre_hook(
                lambda head, inputs: functional.dropout(inputs[0], settings.dropout, head.training)
            )
    if settings.freeze_bn:
        for module in model.modules():
            if isinstance(module, _BatchNorm):
                module.eval()
    if frozen:
        model.requires_grad_(False).eval()
        model.get_submodule(find_head()).requires_grad_(True).train()
