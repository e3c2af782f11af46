"""The networks for small images: AlexNet's convolutions, and the one with batch norm."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from robustmd.backbones import build_backbone
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts


def built(name: str, **keys) -> nn.Module:
    return build_backbone(BACKBONES[name](**keys), BackboneFacts(10, (32, 32)))


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_alexnets_convolutions_are_torchvisions_but_for_the_stem() -> None:
    """The parameters are Σ (k²·in + 1)·out over the five, and 257·10 of the classifier."""
    convolutions = [m for m in built("alexnet").modules() if isinstance(m, nn.Conv2d)]
    channels = [(c.in_channels, c.out_channels) for c in convolutions]
    assert channels == [(3, 64), (64, 192), (192, 384), (384, 256), (256, 256)]
    stem = convolutions[0]
    assert (stem.kernel_size, stem.stride, stem.padding) == ((11, 11), (4, 4), (5, 5))
    squares = (121, 25, 9, 9, 9)
    wanted = sum((k * a + 1) * b for k, (a, b) in zip(squares, channels, strict=True)) + 257 * 10
    assert parameters(built("alexnet")) == wanted


def test_width_scales_alexnets_channels_and_hidden_adds_a_layer() -> None:
    assert built("alexnet", width=0.25).features[0].out_channels == 16
    classifier = built("alexnet", width=0.25, hidden=4096).classifier
    assert [m.out_features for m in classifier if isinstance(m, nn.Linear)] == [4096, 10]


@pytest.mark.parametrize("width", [1.0, 0.5])
def test_convnets_parameters_are_those_of_the_stated_channels(width: float) -> None:
    """Σ (9·in + 2)·out over the convolutions and their norms, and the last layer's."""
    channels = [3, *(round(c * width) for c in (12, 24, 48, 48))]
    wanted = sum((9 * a + 2) * b for a, b in pairwise(channels))
    assert parameters(built("convnet", width=width)) == wanted + (channels[-1] + 1) * 10


@pytest.mark.parametrize(
    ("name", "least", "others"),
    [("alexnet", 32, (33, 48, 64, 224)), ("convnet", 8, (28, 32, 65)), ("resnet18", 32, ())],
)
def test_any_image_that_is_not_too_small_gives_logits(name: str, least: int, others) -> None:
    keys = {"weights": "none"} if name == "resnet18" else {"width": 0.1}
    backbone = BACKBONES[name](**keys)
    model = build_backbone(backbone, BackboneFacts(7, (least, least)))
    for size in (least, *others):
        assert model(torch.zeros(2, 3, size, size)).shape == (2, 7)
    with pytest.raises(UserError) as error:
        build_backbone(backbone, BackboneFacts(7, (least - 1, least - 1)))
    size = f"{least - 1}×{least - 1} px; it needs at least {least}×{least}"
    assert str(error.value) == f"backbone={name}: images are {size}"
