"""Weights to begin with: found, checked, loaded without running anything that is in the file."""

import hashlib
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torchvision.models import ResNet18_Weights, resnet18

from robustmd.backbones import build_backbone
from robustmd.backbones.library import Published
from robustmd.backbones.weights import WeightsFile, find_weights, load_weights
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts

NAME = "resnet18-f37072fd.pth"
RESNET, FACTS = BACKBONES["resnet18"](weights="none"), BackboneFacts(24, (32, 32))


@pytest.fixture(scope="module")
def state() -> OrderedDict[str, torch.Tensor]:
    """What torchvision's file holds: a state dict for 1,000 classes."""
    torch.manual_seed(1)
    return resnet18().state_dict()


@pytest.fixture
def save(tmp_path: Path) -> Callable[[object], WeightsFile]:
    def write(content: object) -> WeightsFile:
        path = tmp_path / "weights.pth"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save(content, path)
        found = find_weights(BACKBONES["resnet18"](weights=str(path)))
        assert found is not None
        return found

    return write


def test_all_weights_but_the_heads_are_taken(state, save) -> None:
    model, weights = build_backbone(RESNET, FACTS), save(state)
    assert weights.sha256 == hashlib.sha256(weights.path.read_bytes()).hexdigest()
    head = model.fc.weight.clone()
    said = load_weights(model, weights, RESNET, FACTS)
    for key, value in model.state_dict().items():
        assert key.startswith("fc.") or torch.equal(value, state[key])
    assert torch.equal(model.fc.weight, head)
    for words in ("weights.pth", "1,000 classes", "24 classes"):
        assert words in said


def test_statistics_count_may_lack_and_the_head_too(state, save) -> None:
    """Files from before torch 0.4.1 lack the counts."""
    kept = {k: v for k, v in state.items() if "num_batches" not in k and not k.startswith("fc.")}
    assert "no head" in load_weights(build_backbone(RESNET, FACTS), save(kept), RESNET, FACTS)


def test_another_models_weights_are_refused_in_a_line(state, save, one_line) -> None:
    for content, words in (
        ({**state, "layer9.weight": torch.zeros(1)}, ["unknown layer9.weight"]),
        ({k: v for k, v in state.items() if "layer4" not in k}, ["lacks layer4", "in all"]),
        (
            {**state, "conv1.weight": torch.zeros(64, 1, 7, 7)},
            ["conv1.weight", "[64, 1, 7, 7]", "[64, 3, 7, 7]"],
        ),
        ({f"module.{k}": v for k, v in state.items()}, ["lacks bn1", "unknown module.bn1"]),
    ):
        model = build_backbone(RESNET, FACTS)
        with pytest.raises(UserError) as error:
            load_weights(model, save(content), RESNET, FACTS)
        one_line(error, "backbone.weights=", "weights.pth", *words)


class Harmful:
    """Unpickled, it would make a folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_what_is_no_state_dict_is_refused_and_nothing_in_it_is_run(
    state, save, tmp_path, one_line
) -> None:
    made = tmp_path / "made"
    for content, words in (
        (Harmful(str(made)), "no file of weights"),
        (pickle.dumps(Harmful(str(made))), "no file of weights"),
        (b"", "no file of weights"),
        (b"<html>not found</html>", "no file of weights"),
        ({"state_dict": dict(state), "epoch": 3}, "holds state_dict, epoch"),
        ([1, 2], "not a state dict"),
        ({}, "holds nothing"),
    ):
        with pytest.raises(UserError) as error:
            save(content)
        one_line(error, "weights.pth", words)
    assert not made.exists()


def test_a_missing_file_is_named(tmp_path, one_line) -> None:
    with pytest.raises(UserError) as error:
        find_weights(BACKBONES["resnet18"](weights=str(tmp_path / "no.pth")))
    one_line(error, "no.pth", "No such file", "must be none")


def test_none_and_other_backbones_begin_at_random() -> None:
    assert find_weights(BACKBONES["resnet18"](weights="none")) is None
    assert find_weights(BACKBONES["alexnet"]()) is None


def test_torchvisions_file_is_found_in_torchs_folder_offline(
    state, tmp_path, monkeypatch, one_line
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    place = tmp_path / "home" / "hub" / "checkpoints" / NAME
    assert ResNet18_Weights.IMAGENET1K_V1.url.endswith(f"/{NAME}")
    backbone = BACKBONES["resnet18"](weights="imagenet")
    with pytest.raises(UserError) as error:
        find_weights(backbone)
    one_line(error, str(place), ResNet18_Weights.IMAGENET1K_V1.url, "backbone.weights=none")
    place.parent.mkdir(parents=True)
    torch.save(state, place)
    with pytest.raises(UserError) as error:
        find_weights(backbone)
    one_line(error, str(place), "not the published file", "f37072fd")
    begins = hashlib.sha256(place.read_bytes()).hexdigest()[:8]
    right = place.with_name(f"resnet18-{begins}.pth")
    place.rename(right)
    monkeypatch.setattr(type(backbone), "published", lambda self: Published(right, "", begins))
    found = find_weights(backbone)
    assert found is not None
    assert found.path == right


def test_a_relative_path_becomes_absolute(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert BACKBONES["resnet18"](weights="a/b.pth").weights == str(tmp_path / "a" / "b.pth")
    assert BACKBONES["resnet18"]().weights == "imagenet"
