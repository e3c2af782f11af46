"""A convolutional network that learns within a few hundred iterations of one CPU core."""

from __future__ import annotations

import torch
from torch import nn

CHANNELS = (12, 24, 48, 48)
STRIDES = (2, 2, 2, 1)


class ConvNet(nn.Module):
    """Four 3×3 convolutions, each with batch norm and ReLU; the mean over places; a linear layer.

    Args:
        num_classes: C, the number of logits, >= 1.
        width: scales every channel count, > 0.

    Input: float [n, 3, H, W] with H, W >= 8. Output: logits, float [n, C].
    """

    def __init__(self, num_classes: int, *, width: float = 1.0) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for channels, stride in zip(CHANNELS, STRIDES, strict=True):
            after = max(1, round(channels * width))
            layers += [
                nn.Conv2d(before, after, kernel_size=3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
            ]
            before = after
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(before, num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.pool(self.features(images)).flatten(1))
        return logits
