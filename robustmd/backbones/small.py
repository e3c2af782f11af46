"""Our own networks for small images: `backbone=alexnet` and `backbone=convnet`."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from robustmd.config.ranges import COUNT_OR_ZERO, POSITIVE
from robustmd.registry import Backbone, BackboneFacts, backbone, key

if TYPE_CHECKING:
    from torch import nn

ALEXNET_CHANNELS = (64, 192, 384, 256, 256)  # torchvision's AlexNet (Krizhevsky 2014)
CONVNET_CHANNELS = (12, 24, 48, 48)
CONVNET_STRIDES = (2, 2, 2, 1)


@backbone("alexnet", head="classifier", smallest=32, order=0)
class AlexNet(Backbone):
    """AlexNet's convolutions for small images (Krizhevsky et al. 2012, as in torchvision).

    Convolutions and channels are torchvision's. Ours, to fit 32 px: an 11×11 stem with stride 4 and
    padding 5, 2×2 pooling, no dropout, and one linear classifier unless `hidden` is given.
    """

    width: float = key(1.0, POSITIVE, "scales the channels")
    hidden: int = key(0, COUNT_OR_ZERO, "neurons of a hidden classifier layer; 0: none")

    def build(self, facts: BackboneFacts) -> nn.Module:
        from torch import nn  # noqa: PLC0415 - torch takes seconds

        a, b, c, d, e = (max(1, round(channels * self.width)) for channels in ALEXNET_CHANNELS)
        features = nn.Sequential(
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
        classifier: nn.Module = nn.Linear(e, self.hidden or facts.num_classes)
        if self.hidden:
            last = nn.Linear(self.hidden, facts.num_classes)
            classifier = nn.Sequential(classifier, nn.ReLU(inplace=True), last)
        return _pooled_and_classified(features, classifier)


@backbone("convnet", head="classifier", smallest=8, order=0.5)
class ConvNet(Backbone):
    """Four 3×3 convolutions with batch norm, of 12, 24, 48 and 48 channels: it learns within a few
    hundred iterations of one CPU core."""

    width: float = key(1.0, POSITIVE, "scales the channels")

    def build(self, facts: BackboneFacts) -> nn.Module:
        from torch import nn  # noqa: PLC0415 - torch takes seconds

        layers: list[nn.Module] = []
        before = 3
        for channels, stride in zip(CONVNET_CHANNELS, CONVNET_STRIDES, strict=True):
            after = max(1, round(channels * self.width))
            layers += [
                nn.Conv2d(before, after, kernel_size=3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
            ]
            before = after
        return _pooled_and_classified(nn.Sequential(*layers), nn.Linear(before, facts.num_classes))


def _pooled_and_classified(features: nn.Module, classifier: nn.Module) -> nn.Module:
    """The logits of the features' mean over places, so that images of any larger size fit."""
    from torch import nn  # noqa: PLC0415 - torch takes seconds

    pool, flatten = nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(
        OrderedDict(features=features, pool=pool, flatten=flatten, classifier=classifier)
    )
