import pytest
import torch
from torch import nn

from robustmd.backbones import build_backbone
from robustmd.backbones.networks.alexnet import AlexNet
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts


def test_its_convolutions_are_alexnets() -> None:
    convolutions = [m for m in AlexNet(10).modules() if isinstance(m, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [
        (3, 64),
        (64, 192),
        (192, 384),
        (384, 256),
        (256, 256),
    ]
    stem = convolutions[0]
    assert (stem.kernel_size, stem.stride, stem.padding) == ((11, 11), (4, 4), (5, 5))


@pytest.mark.parametrize("size", [32, 33, 48, 64, 224])
def test_any_image_from_32_pixels_gives_logits(size: int) -> None:
    assert AlexNet(7, width=0.1)(torch.zeros(2, 3, size, size)).shape == (2, 7)


def test_width_scales_the_channels_and_hidden_adds_a_layer() -> None:
    assert AlexNet(10, width=0.25).features[0].out_channels == 16
    classifier = AlexNet(10, width=0.25, hidden=4096).classifier
    assert [m.out_features for m in classifier if isinstance(m, nn.Linear)] == [4096, 10]


def test_full_width_has_the_known_number_of_parameters() -> None:
    """Σ (k²·in + 1)·out over the five convolutions, and 257·10."""
    assert sum(p.numel() for p in AlexNet(10).parameters()) == (
        (121 * 3 + 1) * 64
        + (25 * 64 + 1) * 192
        + (9 * 192 + 1) * 384
        + (9 * 384 + 1) * 256
        + (9 * 256 + 1) * 256
        + 257 * 10
    )


def test_images_that_are_too_small_are_refused_in_a_line() -> None:
    with pytest.raises(UserError, match="28×28 px; it needs at least 32×32"):
        build_backbone(BACKBONES["alexnet"](), BackboneFacts(10, (28, 28)))
