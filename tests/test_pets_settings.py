"""What data=pets and backbone=resnet18 bring, and what is the same run."""

import pytest
from tiny import composed

from robustmd.config import settings
from robustmd.config.identity import canonical, number_changing
from robustmd.data_sets.pets import Pets
from robustmd.errors import UserError
from robustmd.registry import BACKBONES


def identity(*overrides: str) -> object:
    return canonical(number_changing(settings.as_dict(composed("data=pets", *overrides))))


def test_pets_bring_the_papers_backbone_and_training() -> None:
    config = composed("data=pets")
    settings.validate(config)
    assert config.backbone == BACKBONES["resnet18"](weights="imagenet")
    training = config.training
    assert (training.learning_rate, training.iterations) == (0.005, 5000)
    assert (config.data.size, config.data.crop, config.data.classes) == (256, 224, [])


@pytest.mark.parametrize(("size", "crop"), [(256, 224), (64, 56), (32, 28), (1, 1), (4096, 3584)])
def test_a_crop_that_is_left_out_keeps_the_usual_proportion(size: int, crop: int) -> None:
    assert Pets(size=size).crop == crop


def test_what_is_the_same_run() -> None:
    assert identity() == identity("data.crop=224")
    assert identity("data.size=64") == identity("data.size=64", "data.crop=56")
    assert identity("data.classes=[pug,beagle]") == identity("data.classes=[beagle,pug,pug]")
    different = (
        "data.crop=200",
        "data.size=64",
        "backbone.weights=none",
        "data.classes=[pug,boxer]",
    )
    assert len({str(identity()), *(str(identity(override)) for override in different)}) == 5


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.size=0", "from 1 to 4096"),
        ("data.crop=0", "from 1 to 4096"),
        ("backbone.weights=''", "imagenet, none or the path"),
        ("backbone.weights=null", "imagenet, none or the path"),
        ("data.classes=pug", "a list of classes' names"),
        ("+data.clases=[pug]", "did you mean data.classes?"),
        ("+backbone.width=0.5", "no such key for backbone=resnet18"),
    ],
)
def test_what_is_refused(override: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        settings.validate(composed("data=pets", override))
    assert words in str(error.value)
    assert "\n" not in str(error.value)
