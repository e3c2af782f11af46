"""ImageNet's pets: the 24 shared breeds, class folders, the flat folder with either list."""

import re
from pathlib import Path

import pytest
from pet_photos import CHOSEN, FOUR, ground_truth, numbers_of, write_pets
from refusals import refused
from torchvision.models import ResNet18_Weights

from robustmd.data_sets.imagenet import BREEDS, DEVKIT, PLACES, TABLE, list_imagenet


def test_it_names_24_breeds_once_each():
    for column in ("name", "synset", "words", "ilsvrc_id"):
        assert len({getattr(breed, column) for breed in BREEDS}) == len(BREEDS) == 24
    assert [b.name for b in BREEDS] == sorted(b.name for b in BREEDS)
    assert all(re.fullmatch("n0[0-9]{7}", b.synset) and 1 <= b.ilsvrc_id <= 1000 for b in BREEDS)


def test_synsets_and_words_are_in_the_order_of_torchvisions_1000_classes():
    """Its classes are ordered by synset: a wrong synset would not stand where its name does."""
    categories = ResNet18_Weights.IMAGENET1K_V1.meta["categories"]
    by_synset = [categories.index(b.words) for b in sorted(BREEDS, key=lambda b: b.synset)]
    assert by_synset == sorted(by_synset)


def test_real_folders_and_lists_have_them(real_data):
    folders = {path.name for path in (real_data / "imagenet" / "train").iterdir()}
    lines = (real_data / "oxford-iiit-pet" / "annotations" / "list.txt").read_text().splitlines()
    names = {line.split()[0].rpartition("_")[0].lower() for line in lines}
    assert {b.synset for b in BREEDS} == folders
    assert {b.name for b in BREEDS} == names


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_pets(tmp_path / "data", flat=True)


def put_devkit(path: Path, classes: list) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{number}\n" for number in classes))


def put_table(path: Path) -> None:
    """Kaggle's: not in the images' order, a synset and four numbers for every box."""
    synsets = {breed.ilsvrc_id: breed.synset for breed in BREEDS}
    rows = [
        f"ILSVRC2012_val_{n:08d},{synsets.get(c, f'n1{c:07d}')} 1 2 30 40 "
        for n, c in enumerate(ground_truth(), start=1)
    ]
    path.write_text("\n".join(["ImageId,PredictionString", *reversed(rows), ""]))


def of_test(files: list) -> dict[str, list[str]]:
    """Class → the test images' file names."""
    found: dict[str, list[str]] = {name: [] for name in FOUR}
    for file in files:
        if file.split == "test":
            found[file.label].append(Path(file.path).name)
    return found


EXPECTED = {b.name: [f"ILSVRC2012_val_{n:08d}.JPEG" for n in numbers_of(b, 2)] for b in CHOSEN}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("below", ["imagenet", "."])
def test_flat_validation_images_by_a_list(data, place, below):
    path = data / below / place
    put_table(path) if path.name == TABLE else put_devkit(path, ground_truth())
    files, _ = list_imagenet(data, CHOSEN)
    assert of_test(files) == EXPECTED
    assert sum(file.split == "train" for file in files) == 12


def test_flat_images_without_a_list_are_refused_with_what_would_do(data):
    with refused(str(data / "imagenet" / "val"), DEVKIT, TABLE, "val/SYNSET/"):
        list_imagenet(data, CHOSEN)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: c[:-1], "49,999 images"),
        (lambda c: [*c, 1], "50,001 images"),
        (lambda c: [2, *c[1:]], "50 of each"),
        (lambda c: ["n02085620", *c[1:]], "1,001 classes"),
        (lambda c: ["", *c[1:]], "1,001 classes"),
        (lambda c: [], "0 images"),
    ],
)
def test_other_devkits_are_refused(data, change, fault):
    put_devkit(data / "imagenet" / PLACES[0], change(ground_truth()))
    with refused(DEVKIT, fault):
        list_imagenet(data, CHOSEN)


@pytest.mark.parametrize("name", ["imagenet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC"])
def test_class_folders_are_taken_before_a_list(tmp_path, name):
    data = write_pets(tmp_path / "data")
    (data / "imagenet").rename(data / "moved")
    (data / name).parent.mkdir(parents=True, exist_ok=True)
    (data / "moved").rename(data / name)
    put_devkit(data / name / PLACES[0], [1])
    files, _ = list_imagenet(data, CHOSEN)
    assert all(file.path.startswith(f"{name}/") for file in files)
    assert {label: len(names) for label, names in of_test(files).items()} == dict.fromkeys(FOUR, 2)
