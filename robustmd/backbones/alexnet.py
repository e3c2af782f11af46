"""`backbone=alexnet`: five convolutions for images of 32 px and more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.config.ranges import COUNT_OR_ZERO, POSITIVE
from robustmd.registry import BackboneFacts, Settings, backbone, key

if TYPE_CHECKING:
    from torch import nn


@backbone("alexnet", head="classifier", smallest=32, order=0)
class AlexNet(Settings):
    """AlexNet's convolutions for small images."""

    width: float = key(1.0, POSITIVE, "scales the channels")
    hidden: int = key(0, COUNT_OR_ZERO, "neurons of a hidden classifier layer; 0: none")

    def build(self, facts: BackboneFacts) -> nn.Module:
        from robustmd.backbones.networks import alexnet  # noqa: PLC0415 - torch takes seconds

        return alexnet.AlexNet(facts.num_classes, width=self.width, hidden=self.hidden)
