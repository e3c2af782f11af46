"""From the `backbone` group to a model."""

from __future__ import annotations

from typing import Any

from torch import nn

from robustmd.backbones import alexnet
from robustmd.errors import UserError


def build_backbone(backbone: Any, num_classes: int, image_size: tuple[int, int]) -> nn.Module:
    """The model that `backbone` names.

    Args:
        backbone: `name` and the option's own keys, checked.
        num_classes: C, the number of logits.
        image_size: (H, W) in pixels of the images it will see.

    Raises:
        UserError: the images are too small for it.
    """
    if min(image_size) < alexnet.SMALLEST_IMAGE:
        raise UserError(
            f"backbone={backbone.name}: images are {image_size[0]}×{image_size[1]} px; "
            f"it needs at least {alexnet.SMALLEST_IMAGE}×{alexnet.SMALLEST_IMAGE}"
        )
    return alexnet.AlexNet(num_classes, width=backbone.width, hidden=backbone.hidden)
