"""`backbone=resnet18`: torchvision's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.config.paths import whole
from robustmd.config.ranges import WEIGHTS
from robustmd.registry import BackboneFacts, Settings, backbone, key

if TYPE_CHECKING:
    from torch import nn


@backbone("resnet18", head="fc", smallest=32, order=1)
class ResNet18(Settings):
    """`weights`: imagenet, none, or the path of a state dict, made absolute."""

    weights: str = key("imagenet", WEIGHTS)

    def __post_init__(self) -> None:
        """A relative path means another file elsewhere, so it must not be a run's identity."""
        if self.weights not in ("imagenet", "none", ""):
            self.weights = whole("backbone.weights", self.weights)

    def build(self, facts: BackboneFacts) -> nn.Module:
        from robustmd.backbones.networks import resnet  # noqa: PLC0415 - torch takes seconds

        return resnet.ResNet18(facts.num_classes)
