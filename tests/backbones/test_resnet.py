"""ResNet18: torchvision's network, given images as ours are scaled."""

import copy

import pytest
import torch
from torch import nn
from torchvision.models import resnet18

from robustmd.backbones import build_backbone
from robustmd.backbones.resnet18 import IMAGENET_MEAN, IMAGENET_STD
from robustmd.registry import BACKBONES, BackboneFacts
from robustmd.training.data import normalised
from robustmd.training.learner import Average


def ResNet18(classes: int) -> nn.Module:  # noqa: N802
    return build_backbone(BACKBONES["resnet18"](weights="none"), BackboneFacts(classes, (32, 32)))


def test_it_has_torchvisions_parameters_by_name_and_number() -> None:
    ours, theirs = ResNet18(1000).state_dict(), resnet18().state_dict()
    assert {k: v.shape for k, v in ours.items()} == {k: v.shape for k, v in theirs.items()}
    assert sum(p.numel() for p in ResNet18(1000).parameters()) == 11_689_512


@pytest.mark.parametrize("size", [32, 56, 65])
def test_it_computes_what_torchvisions_does_on_imagenets_scale(size: int) -> None:
    """Whole images in [0, 255] through both: ours by (x/255 − 0.5)/0.25, theirs by mean and std."""
    torch.manual_seed(0)
    ours, theirs = ResNet18(7).eval(), resnet18(num_classes=7).eval()
    theirs.load_state_dict(ours.state_dict())
    pixels = torch.randint(0, 256, (3, size, size, 3), dtype=torch.uint8)
    mean, std = (torch.tensor(c).view(3, 1, 1) for c in (IMAGENET_MEAN, IMAGENET_STD))
    scaled = (pixels.permute(0, 3, 1, 2) / 255 - mean) / std
    with torch.no_grad():
        found, due = ours(normalised(pixels)), theirs(scaled)
    assert found.shape == (3, 7)
    torch.testing.assert_close(found, due, rtol=1e-4, atol=1e-5)


def test_its_input_map_is_neither_trained_nor_saved() -> None:
    model = ResNet18(3)
    assert not {"input_scale", "input_shift"} & (
        model.state_dict().keys() | dict(model.named_parameters())
    )
    assert model.to(torch.float64).input_scale.dtype == torch.float64


def test_channels_last_stays_so_and_changes_nothing() -> None:
    torch.manual_seed(0)
    model = ResNet18(3).eval()
    last = copy.deepcopy(model).to(memory_format=torch.channels_last)
    images = torch.randn(2, 3, 32, 32)
    seen = []
    last.conv1.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        found = last(images.to(memory_format=torch.channels_last))
        torch.testing.assert_close(found, model(images), rtol=1e-4, atol=1e-5)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_averaged_weights_get_batch_norm_statistics_of_their_own() -> None:
    """W̄'s statistics are those of its own activations on the batches, not the last model's."""
    torch.manual_seed(0)
    model = ResNet18(3)
    average = Average(model, None)
    average.include(model, 1)
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    average.include(moved, 1 / 2)
    batches = [torch.randn(8, 3, 32, 32) for _ in range(3)]
    ready = average.ready(moved, batches)
    scaled = [torch.addcmul(ready.input_shift, b, ready.input_scale) for b in batches]
    first = torch.stack([ready.conv1(images) for images in scaled])
    torch.testing.assert_close(
        ready.bn1.running_mean, first.mean((0, 1, 3, 4)), rtol=1e-4, atol=1e-5
    )
    assert ready.bn1.num_batches_tracked == 3


def test_its_head_is_where_it_says() -> None:
    head = ResNet18(24).get_submodule(BACKBONES.flag("resnet18", "head"))
    assert (head.in_features, head.out_features) == (512, 24)


def test_the_same_seed_gives_the_same_weights() -> None:
    models = []
    for _ in range(2):
        torch.manual_seed(5)
        models.append(ResNet18(3).state_dict())
    assert all(torch.equal(value, models[1][name]) for name, value in models[0].items())
