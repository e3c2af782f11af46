"""data=pets on small trees in the two sets' layouts."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pet_photos import FOUR, color_of, photo, write_pets
from PIL import Image
from robustmd.domains.breeds import BREEDS

from robustmd.domains import oxford_pets, pets
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError

BY_NAME = {breed.name: breed for breed in BREEDS}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_pets(tmp_path / "data")


@pytest.fixture
def load(data: Path, tmp_path: Path) -> Callable[..., DomainSet]:
    def go(**changes: object) -> DomainSet:
        given = {"classes": FOUR, "size": 16, "crop": 14, "fetch": False} | changes
        return pets.load(data, tmp_path / "cache", **given)  # type: ignore[arg-type]

    return go


def of_colors(found: DomainSet) -> None:
    """Every example of every split shows the colour of its label's class."""
    for domain in found:
        for split in ("train", "test"):
            examples = domain.split(split)
            assert examples is not None
            variants = len(examples.views.variants)
            rows = np.repeat(examples.rows, variants)
            shown = examples.images[rows].reshape(len(rows), -1, 3).mean(1)
            meant = np.array([color_of(BY_NAME[found.classes[i]]) for i in examples.targets])
            assert np.abs(shown - meant).max() < 6


def test_both_domains_with_vgg_tenfold(load) -> None:
    found = load()
    assert found.names == ("imagenet", "vgg")
    assert found.classes == FOUR
    assert found.image_size == (14, 14)
    assert [(len(d.train), len(d.test)) for d in found] == [(12, 8), (120, 8)]
    assert [d.train.stored for d in found] == [12, 12]
    of_colors(found)


def test_the_expansion_is_the_papers() -> None:
    turns = [f"rotate_{degrees}" for degrees in range(45, 360, 45)]
    assert list(pets.EXPANSION) == ["identity", "flip_horizontal", "flip_vertical", *turns]


def test_without_a_choice_all_24_classes_are_loaded(tmp_path) -> None:
    data = write_pets(tmp_path / "data", names=[], train=1, test=1)
    found = pets.load(data, tmp_path / "cache", size=16, fetch=False, crop=None)
    assert found.classes == tuple(breed.name for breed in BREEDS)
    assert found.image_size == (16, 16)
    of_colors(found)


def test_chosen_classes_keep_the_tables_order_and_their_own_stores(load, tmp_path) -> None:
    found = load(classes=["persian", "chihuahua"])
    assert found.classes == ("chihuahua", "persian")
    of_colors(found)
    load()
    lines: list[str] = []
    load(classes=["persian", "chihuahua"], say=lines.append)
    assert not any("preparing" in line for line in lines)


def test_fingerprint_is_of_what_is_read_not_of_where(load, data, tmp_path) -> None:
    first = load()
    moved = data.rename(tmp_path / "elsewhere")
    arguments = {"classes": FOUR, "size": 16, "fetch": False}
    again = pets.load(moved, tmp_path / "cache", crop=14, **arguments)
    assert again.fingerprint == first.fingerprint
    assert (
        pets.load(moved, tmp_path / "cache", crop=12, **arguments).fingerprint != again.fingerprint
    )
    photo(moved / "imagenet" / "val" / "n02085620" / "n02085620_0.JPEG", BY_NAME["pug"])
    assert (
        pets.load(moved, tmp_path / "cache", crop=14, **arguments).fingerprint != again.fingerprint
    )


def test_truncated_files_are_refused_by_name_or_left_out(load, data, one_line) -> None:
    paths = [
        data / "imagenet" / "train" / "n02085620" / "n02085620_1.JPEG",
        data / "oxford-iiit-pet" / "images" / "chihuahua_2.jpg",
    ]
    for path in paths:
        buffer = io.BytesIO()
        Image.effect_noise((200, 200), 80).save(buffer, "JPEG")
        path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with pytest.raises(UserError) as error:
        load()
    one_line(error, "2 of 40 images", *(p.name for p in paths), "truncated", "skip_unreadable=true")
    found = load(skip_unreadable=True)
    assert [(len(d.train), len(d.test)) for d in found] == [(11, 8), (110, 8)]
    assert any("2 unreadable and left out" in note for note in found.notes)
    of_colors(found)


def test_a_class_of_which_nothing_can_be_read_is_named(load, data, one_line) -> None:
    for path in (data / "imagenet" / "val" / "n02123394").iterdir():
        path.write_bytes(b"no image")
    with pytest.raises(UserError) as error:
        load(skip_unreadable=True)
    one_line(error, "domain imagenet, test split", "persian")


def test_what_the_lists_do_not_name_is_left_alone(load, data) -> None:
    before = load()
    images = data / "oxford-iiit-pet" / "images"
    (images / "Egyptian_Mau_177.mat").write_bytes(b"MATLAB")
    photo(images / "chihuahua_99.jpg", BY_NAME["pug"])
    photo(images / "Abyssinian_1.jpg", BY_NAME["pug"])
    (data / "imagenet" / "train" / "n02085620" / ".DS_Store").write_bytes(b"x")
    photo(data / "imagenet" / "train" / "n01440764" / "tench.JPEG", BY_NAME["pug"])
    with (data / "oxford-iiit-pet" / "annotations" / "trainval.txt").open("a") as file:
        file.write("Abyssinian_1 1 1 1\n")
    assert load().fingerprint == before.fingerprint


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_domain_without_a_class_is_named_unless_it_is_chosen_out(
    load, data, split, one_line
) -> None:
    for path in (data / "imagenet" / split / "n02123394").iterdir():
        path.unlink()
    with pytest.raises(UserError) as error:
        load()
    one_line(error, "domain imagenet", f"persian in {split}/n02123394", "data.classes=")
    load(classes=["chihuahua", "egyptian_mau"])
    lists = data / "oxford-iiit-pet" / "annotations" / "test.txt"
    lists.write_text("".join(x for x in lists.open() if not x.startswith("chihuahua")))
    with pytest.raises(UserError) as error:
        load(classes=["chihuahua", "egyptian_mau"])
    one_line(error, "domain vgg", "chihuahua in test.txt")


def test_without_imagenet_nothing_is_fetched_and_it_is_said_how_to_get_it(
    load, data, monkeypatch, one_line
) -> None:
    monkeypatch.setattr(oxford_pets, "fetch_file", lambda *_: pytest.fail("it fetches"))
    (data / "imagenet").rename(data / "not_there")
    (data / "oxford-iiit-pet").rename(data / "nor_this")
    with pytest.raises(UserError) as error:
        load(fetch=True)
    one_line(error, "lacks ImageNet", str(data / "imagenet"), "https://image-net.org", "docs/pets")


def test_partial_sets_are_noted_and_whole_ones_are_not(load, monkeypatch) -> None:
    assert sum("it is another" in note for note in load().notes) == 3
    monkeypatch.setattr("robustmd.domains.imagenet.VALIDATION_IMAGES", 2)
    monkeypatch.setattr(oxford_pets, "PUBLISHED", {"train": 12, "test": 8})
    assert load().notes == ()


@pytest.mark.parametrize("crop", [0, 17])
def test_a_crop_that_does_not_fit_is_refused(load, crop, one_line) -> None:
    with pytest.raises(UserError) as error:
        load(crop=crop)
    one_line(error, f"data.crop={crop}", "data.size=16")


def test_real_pets_of_four_classes(real_data, tmp_path) -> None:
    found = pets.load(real_data, tmp_path, classes=FOUR, size=64, crop=56, fetch=False)
    assert [d.train.stored for d in found] == [1204, 108]
    assert [(len(d.train), len(d.test)) for d in found] == [(1204, 204), (1080, 35)]
    assert [np.bincount(d.test.targets).tolist() for d in found] == [[51] * 4, [3, 15, 15, 2]]
