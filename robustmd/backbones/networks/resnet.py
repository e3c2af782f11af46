"""ResNet18, torchvision's, for images that are scaled as every backbone's here are."""

from __future__ import annotations

import torch
from torchvision.models.resnet import BasicBlock, ResNet

BLOCKS = (2, 2, 2, 2)
# Of ILSVRC2012's images scaled to [0, 1], for red, green and blue: torchvision's own constants.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class ResNet18(ResNet):
    """The paper's pets backbone (He et al. 2016): torchvision's resnet18 with a head for C classes.

    Parameters, and their names in the state dict, are torchvision's, so that its weights fit. Those
    were learned on (u − mean)/std with u = pixel/255, while our backbones are given
    x = (u − 0.5)/0.25. The two differ by an affine map of each channel,

        (u − mean)/std = x · 0.25/std + (0.5 − mean)/std,

    which comes first here. It is a constant of the network, neither trained nor saved. It cannot be
    folded into the first convolution: that pads with 0, which must mean the mean colour. It stays
    for weights=none, too, so that a state dict means one thing.

    Args:
        num_classes: C, the number of logits, >= 1.

    Input: float [n, 3, H, W] with H, W >= 32. Output: logits, float [n, C].
    """

    scale: torch.Tensor
    shift: torch.Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__(BasicBlock, list(BLOCKS), num_classes=num_classes)
        mean, std = (torch.tensor(c).view(1, 3, 1, 1) for c in (IMAGENET_MEAN, IMAGENET_STD))
        self.register_buffer("scale", 0.25 / std, persistent=False)
        self.register_buffer("shift", (0.5 - mean) / std, persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = super().forward(torch.addcmul(self.shift, images, self.scale))
        return logits
