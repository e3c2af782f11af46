"""AlexNet's five convolutions, with a stem and pooling that fit 32-pixel images."""

from __future__ import annotations

import torch
from torch import nn

CHANNELS = (64, 192, 384, 256, 256)  # torchvision's AlexNet (Krizhevsky 2014)


class AlexNet(nn.Module):
    """The paper's digits backbone (Krizhevsky et al. 2012, as in torchvision) for small images.

    Convolutions and channels are torchvision's. Ours, to fit 32 px: an 11×11 stem with stride 4 and
    padding 5, 2×2 pooling, no dropout, and one linear classifier unless `hidden` is given.

    Args:
        num_classes: C, the number of logits, >= 1.
        width: scales every channel count, > 0; 1 is AlexNet's own.
        hidden: neurons of one hidden classifier layer (AlexNet has 4,096); 0 for none.

    Input: float [n, 3, H, W] with H, W >= 32. Output: logits, float [n, C].
    """

    def __init__(self, num_classes: int, *, width: float = 1.0, hidden: int = 0) -> None:
        super().__init__()
        a, b, c, d, e = (max(1, round(channels * width)) for channels in CHANNELS)
        self.features = nn.Sequential(
            nn.Conv2d(3, a, kernel_size=11, stride=4, padding=5),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(a, b, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(b, c, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(c, d, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(d, e, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)  # larger images; at 32 px there is one place already
        self.classifier = (
            nn.Sequential(
                nn.Linear(e, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, num_classes)
            )
            if hidden
            else nn.Linear(e, num_classes)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.features(images)).flatten(1)
        logits: torch.Tensor = self.classifier(features)
        return logits
