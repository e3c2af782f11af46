"""The backbones, one file each: their settings, and how the model is built.

Every module here is imported, so that a new file is a new backbone.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts

if TYPE_CHECKING:
    from torch import nn

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def build_backbone(backbone: Any, facts: BackboneFacts) -> nn.Module:
    """The model of a backbone's settings, with random weights of torch's own generator.

    Raises:
        UserError: the images are too small for it, or it refuses a combination of its settings.
    """
    from torch import nn  # noqa: PLC0415 - settings are checked without torch

    (height, width), smallest = facts.image_size, BACKBONES.flag(backbone.name, "smallest")
    if min(height, width) < smallest:
        raise UserError(
            f"backbone={backbone.name}: images are {height}×{width} px; "
            f"it needs at least {smallest}×{smallest}"
        )
    try:
        model = backbone.build(facts)
    except ValueError as error:
        raise UserError(f"backbone={backbone.name}: {error}") from None
    if not isinstance(model, nn.Module):
        raise UserError(
            f"backbone={backbone.name}: build returned {type(model).__name__}; it must return a "
            "torch.nn.Module"
        )
    return model
