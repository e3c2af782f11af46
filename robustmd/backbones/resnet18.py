"""`backbone=resnet18`: torchvision's, on ImageNet's scale whatever its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.backbones.library import Pretrained, Published
from robustmd.backbones.torchvision import TorchVision
from robustmd.config.ranges import WEIGHTS, key
from robustmd.registry import BackboneFacts, backbone

if TYPE_CHECKING:
    from torch import nn

# Of ILSVRC2012's images in [0, 1], for red, green and blue: torchvision's own constants.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@backbone("resnet18", head="fc", smallest=32, order=1)
class ResNet18(Pretrained):
    """torchvision's ResNet-18."""

    weights: str = key("imagenet", WEIGHTS, "what it starts from; a path is made absolute")

    def build(self, facts: BackboneFacts) -> nn.Module:
        from robustmd.backbones.networks.changes import scale_input  # noqa: PLC0415 - torch

        model = TorchVision(model="resnet18").bare(facts)
        scale_input(model, IMAGENET_MEAN, IMAGENET_STD)
        return model

    def published(self) -> Published:
        return TorchVision(model="resnet18", weights="IMAGENET1K_V1").published()
