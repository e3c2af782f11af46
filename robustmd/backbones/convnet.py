"""`backbone=convnet`: four convolutions with batch norm, for small images and short runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.config.ranges import POSITIVE
from robustmd.registry import BackboneFacts, Settings, backbone, key

if TYPE_CHECKING:
    from torch import nn


@backbone("convnet", head="classifier", smallest=8, order=0.5)
class ConvNet(Settings):
    """Four 3×3 convolutions with batch norm, of 12, 24, 48 and 48 channels."""

    width: float = key(1.0, POSITIVE, "scales the channels")

    def build(self, facts: BackboneFacts) -> nn.Module:
        from robustmd.backbones.networks import convnet  # noqa: PLC0415 - torch takes seconds

        return convnet.ConvNet(facts.num_classes, width=self.width)
