"""Models of torchvision and timm by name, and resnet18: head, sizes, weights, scale, changes."""

import copy
import json

import pytest
import torch
from tiny import composed
from torch import nn
from torchvision import models

from robustmd.backbones import build_backbone, head_of
from robustmd.backbones.changes import without_numbers
from robustmd.backbones.weights import find_weights, load_weights
from robustmd.config.identity import number_changing
from robustmd.config.resolve import resolve
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts
from robustmd.training.data import normalised
from robustmd.training.learner import Average

IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
HEADS = {  # a small member of each of torchvision's families, and where its classes are
    "alexnet": "classifier.6",
    "convnext_tiny": "classifier.2",
    "densenet121": "classifier",
    "efficientnet_b0": "classifier.1",
    "googlenet": "fc",
    "inception_v3": "fc",
    "maxvit_t": "classifier.5",
    "mnasnet0_5": "classifier.1",
    "mobilenet_v2": "classifier.1",
    "mobilenet_v3_small": "classifier.3",
    "regnet_x_400mf": "fc",
    "resnet18": "fc",
    "shufflenet_v2_x0_5": "fc",
    "squeezenet1_0": "classifier.1",
    "swin_t": "head",
    "vgg11": "classifier.6",
    "vit_b_32": "heads.head",
}


def built(name: str, side: int = 64, **keys) -> tuple[nn.Module, str]:
    """Without numbers: the model for 7 classes and its head's name."""
    backbone, facts = BACKBONES[name](**keys), BackboneFacts(7, (side, side))
    backbone.check()
    return without_numbers(lambda: build_backbone(backbone, facts)), head_of(backbone, facts)


@pytest.mark.parametrize("model", HEADS)
def test_the_head_is_where_the_family_has_it(model: str) -> None:
    side = {"inception_v3": 75, "maxvit_t": 224}.get(model, 64)
    found, head = built("torchvision", side, model=model)
    assert head == HEADS[model]
    layer = found.get_submodule(head)
    assert getattr(layer, "out_features", None) == 7 or layer.out_channels == 7
    assert found(torch.empty(2, 3, side, side, device="meta")).shape == (2, 7)


@pytest.mark.parametrize(
    ("model", "head"),
    [
        ("vit_tiny_patch16_224", "head"),
        ("convnext_atto", "head.fc"),
        ("mobilenetv3_small_050", "classifier"),
    ],
)
def test_timms_models_take_the_images_as_they_are(model: str, head: str) -> None:
    pytest.importorskip("timm")
    found, name = built("timm", 64, model=model)
    assert name == head
    assert found(torch.empty(2, 3, 64, 64, device="meta")).shape == (2, 7)


def test_images_that_it_cannot_take_are_one_line(one_line) -> None:
    with pytest.raises(UserError) as error:
        built("torchvision", 60, model="vit_b_16")
    one_line(
        error, "backbone=torchvision: model=vit_b_16 takes no images of 60×60 px", "patch size"
    )


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["model=resnet5"], "no such model for classification; near are resnet50"),
        (["weights=IMAGENET1K_V9"], "there are IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT, none"),
        (["mean=[0.5,0.5,0.5]"], "mean and std go together"),
        (["mean=[0,0,0]", "std=[1,0,1]"], "mean and std go together"),
        (["mean=[0,0]", "std=[1,1]"], "three numbers, of red, green and blue"),
        (["freeze=head"], "must be one of none, features"),
        (["dropout=1"], r"must be a number in \[0, 1\)"),
    ],
)
def test_a_wrong_key_is_one_line(keys: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        composed("backbone=torchvision", *(f"++backbone.{key}" for key in keys))
    assert "\n" not in str(error.value)


def test_without_timm_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "timm", None)
    with pytest.raises(UserError, match=r" -m pip install 'timm>=1.0"):
        composed("backbone=timm")


def test_published_weights_are_looked_for_in_the_librarys_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    backbone = BACKBONES["torchvision"](weights="IMAGENET1K_V2")
    with pytest.raises(UserError, match=r"resnet50-11ad3fa6\.pth at .*backbone.weights=none"):
        find_weights(backbone)


def test_timms_weights_are_looked_for_in_the_hubs_cache(tmp_path, monkeypatch) -> None:
    pytest.importorskip("timm")
    from safetensors.torch import save_file

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    backbone = BACKBONES["timm"](model="test_vit.r160_in1k", weights="pretrained")
    with pytest.raises(UserError, match="let timm fetch it"):
        find_weights(backbone)
    there = tmp_path / "models--timm--test_vit.r160_in1k"
    (there / "refs").mkdir(parents=True)
    (there / "refs" / "main").write_text("1")
    (there / "snapshots" / "1").mkdir(parents=True)
    save_file({"a": torch.zeros(1)}, there / "snapshots" / "1" / "model.safetensors")
    found = find_weights(backbone)
    assert found is not None
    assert found.path == there / "snapshots" / "1" / "model.safetensors"


def test_a_librarys_state_dict_fits_but_for_its_head(tmp_path) -> None:
    torch.manual_seed(0)
    state = models.squeezenet1_1().state_dict()
    torch.save(state, tmp_path / "weights.pth")
    backbone = BACKBONES["torchvision"](
        model="squeezenet1_1", weights=str(tmp_path / "weights.pth")
    )
    facts, weights = BackboneFacts(7, (64, 64)), find_weights(backbone)
    assert weights is not None
    found = build_backbone(backbone, facts)
    said = load_weights(found, weights, backbone, facts)
    assert "a head of 1,000 classes; a new, random head for 7" in said
    assert torch.equal(found.features[0].weight, state["features.0.weight"])


@pytest.mark.parametrize(
    ("model", "key", "there", "here"),
    [
        ("densenet121", "features.x.denselayer1.norm.1.weight", (1,), (1,)),
        ("vit_b_32", "encoder.pos_embedding", (1, 50, 8), (1, 10, 8)),
        ("googlenet", "aux1.fc1.weight", (1,), None),
    ],
)
def test_published_weights_are_read_for_this_model_and_size(model, key, there, here) -> None:
    backbone = BACKBONES["torchvision"](model=model)
    found = backbone.adapt_state({key: torch.zeros(there)}, BackboneFacts(7, (96, 96)))
    due = {} if here is None else {key.replace("norm.1", "norm1"): here}
    assert {name: tuple(value.shape) for name, value in found.items()} == due


def test_timm_takes_a_file_for_another_size(tmp_path) -> None:
    timm = pytest.importorskip("timm")
    from safetensors.torch import save_file

    torch.manual_seed(0)
    state = timm.create_model("test_vit").state_dict()
    save_file(state, tmp_path / "weights.safetensors")
    backbone = BACKBONES["timm"](model="test_vit", weights=str(tmp_path / "weights.safetensors"))
    facts, weights = BackboneFacts(7, (64, 64)), find_weights(backbone)
    found = build_backbone(backbone, facts)
    load_weights(found, weights, backbone, facts)
    assert torch.equal(found.state_dict()["blocks.0.norm1.weight"], state["blocks.0.norm1.weight"])
    assert found.pos_embed.shape != state["pos_embed"].shape


def test_the_scale_of_its_weights_is_the_runs_identity(tmp_path) -> None:
    def identity(*keys: str) -> dict:
        config = resolve(composed("backbone=torchvision", *keys), ("a", "b")).config
        return number_changing(json.loads(json.dumps(config.model_dump())))["backbone"]

    assert identity() == {"name": "torchvision"}
    named = identity("backbone.weights=IMAGENET1K_V2")
    assert (named["mean"], named["std"]) == (IMAGENET_MEAN, IMAGENET_STD)
    own = identity("backbone.weights=a.pth", "++backbone.mean=[0,0,0]", "++backbone.std=[1,1,1]")
    assert (own["mean"], own["std"]) == ([0, 0, 0], [1, 1, 1])


def test_resnet18_has_torchvisions_parameters_and_the_seeds_weights() -> None:
    torch.manual_seed(5)
    resnet = BACKBONES["resnet18"](weights="none")
    ours = build_backbone(resnet, BackboneFacts(7, (32, 32)))
    torch.manual_seed(5)
    due = models.resnet18(num_classes=7).state_dict()
    found = ours.state_dict()
    assert found.keys() == due.keys()
    assert all(torch.equal(value, due[key]) for key, value in found.items())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("torchvision", {"model": "resnet18", "mean": IMAGENET_MEAN, "std": IMAGENET_STD}),
        ("resnet18", {"weights": "none"}),
    ],
)
@pytest.mark.parametrize("side", [32, 65])
def test_images_come_to_it_on_the_scale_of_its_weights(name: str, keys, side: int) -> None:
    """Pixels in [0, 255] through both: ours by (u/255 − 0.5)/0.25, theirs by mean and std."""
    torch.manual_seed(0)
    ours = build_backbone(BACKBONES[name](**keys), BackboneFacts(7, (side, side))).eval()
    bare = models.resnet18(num_classes=7).eval()
    bare.load_state_dict(ours.state_dict())
    pixels = torch.randint(0, 256, (2, side, side, 3), dtype=torch.uint8)
    mean, std = (torch.tensor(c).view(3, 1, 1) for c in (IMAGENET_MEAN, IMAGENET_STD))
    with torch.no_grad():
        due = bare((pixels.permute(0, 3, 1, 2) / 255 - mean) / std)
        torch.testing.assert_close(ours(normalised(pixels)), due, rtol=1e-4, atol=1e-5)


def trained_parts(model: nn.Module) -> set[str]:
    return {name for name, p in model.named_parameters() if p.requires_grad}


def test_frozen_features_leave_the_head_to_learn() -> None:
    model, head = built("torchvision", model="resnet18", freeze="features")
    assert trained_parts(model) == {"fc.weight", "fc.bias"}
    assert [name for name, m in model.named_modules() if m.training] == [head]


def test_frozen_batch_norm_is_in_evaluation_mode_and_learns_its_scale() -> None:
    model, _ = built("torchvision", model="resnet18", freeze_bn=True)
    modes = {type(m).__name__: m.training for m in model.modules()}
    assert not modes["BatchNorm2d"]
    assert modes["Conv2d"]
    assert "bn1.weight" in trained_parts(model)


def test_dropout_is_the_models_own_or_comes_before_the_head() -> None:
    own, _ = built("torchvision", model="alexnet", dropout=0.25)
    assert {m.p for m in own.modules() if isinstance(m, nn.Dropout)} == {0.25}
    torch.manual_seed(0)
    backbone = BACKBONES["resnet18"](weights="none", dropout=0.5)
    model = build_backbone(backbone, BackboneFacts(7, (32, 32)))
    assert model.state_dict().keys() == models.resnet18().state_dict().keys()
    features = torch.ones(1, 512)
    assert not torch.equal(model.fc(features), model.fc(features))
    model.eval()
    assert torch.equal(model.fc(features), model.fc(features))


def test_a_model_without_one_head_is_refused_where_one_is_needed() -> None:
    pytest.importorskip("timm")
    with pytest.raises(UserError, match="cannot tell the head"):
        built("timm", 64, model="deit_tiny_distilled_patch16_224", freeze="features")


def test_averaged_weights_get_batch_norm_statistics_of_their_own() -> None:
    """W̄'s statistics are those of its own activations on the batches, not the last model's."""
    torch.manual_seed(0)
    model = build_backbone(BACKBONES["resnet18"](weights="none"), BackboneFacts(3, (32, 32)))
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
