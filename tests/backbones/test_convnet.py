from itertools import pairwise

import pytest
import torch

from robustmd.backbones import build_backbone
from robustmd.backbones.networks.convnet import ConvNet
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts


@pytest.mark.parametrize("size", [8, 28, 32, 65])
def test_any_image_from_8_pixels_gives_logits(size: int) -> None:
    assert ConvNet(7)(torch.zeros(2, 3, size, size)).shape == (2, 7)


@pytest.mark.parametrize("width", [1.0, 0.5])
def test_its_parameters_are_those_of_the_stated_channels(width: float) -> None:
    """Σ (9·in + 2)·out over the convolutions and their norms, and the last layer's."""
    channels = [3, *(round(c * width) for c in (12, 24, 48, 48))]
    wanted = sum((9 * a + 2) * b for a, b in pairwise(channels))
    wanted += (channels[-1] + 1) * 10
    assert sum(p.numel() for p in ConvNet(10, width=width).parameters()) == wanted


def test_images_that_are_too_small_are_refused_in_a_line() -> None:
    with pytest.raises(UserError, match="7×7 px; it needs at least 8×8"):
        build_backbone(BACKBONES["convnet"](), BackboneFacts(10, (7, 7)))
