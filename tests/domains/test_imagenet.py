"""ILSVRC2012's layouts: class folders, and the flat validation folder with either list."""

from collections import Counter
from pathlib import Path

import pytest
from pet_photos import FOUR, ground_truth, numbers_of, write_pets

from robustmd.domains.breeds import BREEDS, chosen_breeds
from robustmd.domains.imagenet import DEVKIT, PLACES, TABLE, list_imagenet
from robustmd.errors import UserError

CHOSEN = chosen_breeds(FOUR)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_pets(tmp_path / "data", flat=True)


def put_devkit(path: Path, classes: list[int]) -> None:
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


def _of_test(files: list) -> dict[str, list[str]]:
    """Class → the test images' file names."""
    found: dict[str, list[str]] = {}
    for file in files:
        if file.split == "test":
            found.setdefault(file.label, []).append(Path(file.path).name)
    return found


EXPECTED = {b.name: [f"ILSVRC2012_val_{n:08d}.JPEG" for n in numbers_of(b, 2)] for b in CHOSEN}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("below", ["imagenet", "."])
def test_flat_validation_images_by_a_list(data, place, below) -> None:
    path = data / below / place
    put_table(path) if path.name == TABLE else put_devkit(path, ground_truth())
    files, _ = list_imagenet(data, CHOSEN)
    assert {label: sorted(names) for label, names in _of_test(files).items()} == EXPECTED
    assert Counter(f.split for f in files) == {"train": 12, "test": 8}


def test_flat_images_without_a_list_are_refused_with_what_would_do(data, one_line) -> None:
    with pytest.raises(UserError) as error:
        list_imagenet(data, CHOSEN)
    one_line(error, str(data / "imagenet" / "val"), DEVKIT, TABLE, "val/SYNSET/")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: c[:-1], "49,999 images"),
        (lambda c: [*c, 1], "50,001 images"),
        (lambda c: [2, *c[1:]], "50 of each"),
        (lambda c: [1001, *c[1:]], "50 of each"),
        (lambda c: ["n02085620", *c[1:]], "no list"),
        (lambda c: ["", *c[1:]], "no list"),
        (lambda c: ["0x1", *c[1:]], "no list"),
        (lambda c: [], "0 images"),
    ],
)
def test_other_devkits_are_refused(data, change, fault, one_line) -> None:
    put_devkit(data / "imagenet" / PLACES[0], change(ground_truth()))
    with pytest.raises(UserError) as error:
        list_imagenet(data, CHOSEN)
    one_line(error, DEVKIT, fault)


def test_class_folders_are_taken_before_a_list(tmp_path) -> None:
    data = write_pets(tmp_path / "data")
    put_devkit(data / "imagenet" / PLACES[0], [1])
    files, _ = list_imagenet(data, CHOSEN)
    assert {label: len(names) for label, names in _of_test(files).items()} == dict.fromkeys(FOUR, 2)


@pytest.mark.parametrize("name", ["ILSVRC2012", "ILSVRC/Data/CLS-LOC"])
def test_other_folder_names_will_do(tmp_path, name) -> None:
    data = write_pets(tmp_path / "data")
    (data / name).parent.mkdir(parents=True, exist_ok=True)
    (data / "imagenet").rename(data / name)
    files, _ = list_imagenet(data, CHOSEN)
    assert all(file.path.startswith(f"{name}/") for file in files)
    assert len(files) == 20
