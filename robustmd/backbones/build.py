"""From the `backbone` group to a model."""

from __future__ import annotations

from typing import Any

from torch import nn

from robustmd.backbones import alexnet
from robustmd.errors import UserError

HEADS = {"alexnet": "classifier", "resnet18": "fc"}  # the layer that a file's weights leave alone
SMALLEST_IMAGE = {"alexnet": alexnet.SMALLEST_IMAGE, "resnet18": 32}


def build_backbone(backbone: Any, num_classes: int, image_size: tuple[int, int]) -> nn.Module:
    """The model that `backbone` names, with random weights of torch's own generator.

    Args:
        backbone: `name` and the option's own keys, checked.
        num_classes: C, the number of logits.
        image_size: (H, W) in pixels of the images it will see.

    Raises:
        UserError: the images are too small for it.
    """
    smallest = SMALLEST_IMAGE[backbone.name]
    if min(image_size) < smallest:
        raise UserError(
            f"backbone={backbone.name}: images are {image_size[0]}×{image_size[1]} px; "
            f"it needs at least {smallest}×{smallest}"
        )
    if backbone.name == "resnet18":
        from robustmd.backbones import resnet  # noqa: PLC0415 - torchvision takes seconds

        return resnet.ResNet18(num_classes)
    return alexnet.AlexNet(num_classes, width=backbone.width, hidden=backbone.hidden)
