"""data=pets on small trees in the two sets' layouts, and what it brings."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pet_photos import FOUR, color_of, photo, write_pets
from PIL import Image
from refusals import refused
from tiny import composed

from robustmd.config.identity import canonical, number_changing
from robustmd.domains import DomainSet, pets
from robustmd.domains.pets import Pets
from robustmd.registry import BACKBONES, DataFacts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_pets(tmp_path / "data")


@pytest.fixture
def load(data: Path, facts) -> Callable[..., DomainSet]:
    def go(folder: str = "data", say=lambda line: None, **changes: object) -> DomainSet:
        given = {"classes": list(FOUR), "size": 16} | changes
        return Pets(**given).load(facts(folder, say=say))  # type: ignore[arg-type]

    return go


def of_colors(found: DomainSet) -> None:
    """Every example of every split shows the colour of its label's class."""
    for domain in found:
        for examples in domain.splits.values():
            rows = np.repeat(examples.rows, len(examples.views.variants))
            shown = found.images[rows].reshape(len(rows), -1, 3).mean(1)
            meant = np.array([color_of(found.classes[i]) for i in examples.targets])
            assert np.abs(shown - meant).max() < 6


def test_both_domains_with_vgg_tenfold(load):
    found = load()
    assert found.names == Pets().names() == ("imagenet", "vgg")
    assert found.classes == FOUR
    assert found.image_size == (14, 14)
    assert [(len(d.train), len(d.test)) for d in found] == [(12, 8), (120, 8)]
    assert [d.train.stored for d in found] == [12, 12]
    of_colors(found)


def test_the_expansion_is_the_papers():
    turns = [f"rotate_{degrees}" for degrees in range(45, 360, 45)]
    assert list(pets.EXPANSION) == ["identity", "flip_horizontal", "flip_vertical", *turns]


def test_chosen_classes_keep_the_tables_order_and_their_own_stores(load):
    found = load(classes=["persian", "chihuahua"])
    assert found.classes == ("chihuahua", "persian")
    of_colors(found)
    load()
    lines: list[str] = []
    load(classes=["persian", "chihuahua"], say=lines.append)
    assert not any("preparing" in line for line in lines)


def test_truncated_files_are_refused_by_name_or_left_out(load, data):
    paths = [
        data / "imagenet" / "train" / "n02085620" / "n02085620_1.JPEG",
        data / "oxford-iiit-pet" / "images" / "chihuahua_2.jpg",
    ]
    for path in paths:
        buffer = io.BytesIO()
        Image.effect_noise((200, 200), 80).save(buffer, "JPEG")
        path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with refused("2 of 40 images", *(p.name for p in paths), "truncated", "skip_unreadable=true"):
        load()
    found = load(skip_unreadable=True)
    assert [(len(d.train), len(d.test)) for d in found] == [(11, 8), (110, 8)]
    assert any("2 unreadable and left out" in note for note in found.notes)
    of_colors(found)


def test_what_the_lists_do_not_name_is_left_alone(load, data):
    before = load()
    images = data / "oxford-iiit-pet" / "images"
    (images / "Egyptian_Mau_177.mat").write_bytes(b"MATLAB")
    photo(images / "chihuahua_99.jpg", "pug")
    photo(data / "imagenet" / "train" / "n01440764" / "tench.JPEG", "pug")
    with (data / "oxford-iiit-pet" / "annotations" / "trainval.txt").open("a") as file:
        file.write("Abyssinian_1 1 1 1\n")
    assert load().fingerprint == before.fingerprint


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"no image")])
def test_a_domain_without_a_class_is_named_unless_it_is_chosen_out(load, data, spoil):
    for path in (data / "imagenet" / "val" / "n02123394").iterdir():
        spoil(path)
    with refused("domain imagenet", "persian (n02123394) in test", "data.classes="):
        load(skip_unreadable=True)
    load(classes=["chihuahua", "egyptian_mau"])
    lists = data / "oxford-iiit-pet" / "annotations" / "test.txt"
    lists.write_text("".join(x for x in lists.open() if not x.startswith("chihuahua")))
    with refused("domain vgg", "chihuahua", "in test"):
        load(classes=["chihuahua", "egyptian_mau"])


def test_without_imagenet_nothing_is_fetched_and_it_is_said_how_to_get_it(load, data, monkeypatch):
    monkeypatch.setattr(pets, "fetching", lambda *_: pytest.fail("it fetches"))
    place = str(data.parent / "none" / "imagenet")
    with refused("lacks ImageNet", place, "https://image-net.org", "docs/pets"):
        load("none")


def test_real_pets_of_four_classes(real_data, tmp_path):
    folders = {"data": real_data, "cache": tmp_path}
    facts = DataFacts(folders.__getitem__, lambda line: None)
    found = Pets(classes=list(FOUR), size=64).load(facts)
    assert [d.train.stored for d in found] == [1204, 108]
    assert [(len(d.train), len(d.test)) for d in found] == [(1204, 204), (1080, 35)]
    assert [np.bincount(d.test.targets).tolist() for d in found] == [[51] * 4, [3, 15, 15, 2]]


def test_pets_bring_the_papers_backbone_and_training():
    config = composed("data=pets")
    assert config.backbone == BACKBONES["resnet18"](weights="imagenet")
    training = config.training
    assert (training.learning_rate, training.iterations) == (0.005, 5000)
    assert (config.data.size, config.data.crop, config.data.classes) == (256, 224, [])


def test_a_crop_that_is_left_out_keeps_the_usual_proportion():
    assert [Pets(size=size).crop for size in (256, 64, 1)] == [224, 56, 1]


def test_what_is_the_same_run():
    config = composed("data=pets")

    def identity(**changes: object) -> str:
        changed = config.model_copy(update={"data": Pets(**changes)})  # type: ignore[arg-type]
        return str(canonical(number_changing(changed.model_dump())))

    assert identity() == identity(crop=224) != identity(crop=200)
    assert identity(classes=["pug", "beagle"]) == identity(classes=["beagle", "pug", "pug"])


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.size=0", ["from 1 to 4096"]),
        ("data.crop=257", ["data.crop=257", "data.size=256"]),
        ("data.classes=pug", ["a list of classes' names"]),
        ("data.classes=[pug,poodle]", ["no class 'poodle'", "basset_hound, beagle"]),
        ("data.classes=[pug,pug]", ["data.classes=[pug]", "two are needed", "yorkshire_terrier"]),
    ],
)
def test_what_is_refused(override, words):
    with refused(*words):
        composed("data=pets", override)
