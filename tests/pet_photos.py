"""A small data folder of both pets' sets, in the layouts that users have; imported by name."""

import colorsys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from robustmd.data_sets.imagenet import BREEDS, Breed
from robustmd.data_sets.pets import Pets

FOUR = ("chihuahua", "egyptian_mau", "persian", "yorkshire_terrier")
CHOSEN = Pets(classes=list(FOUR)).breeds()


def color_of(breed: Breed) -> tuple[int, int, int]:
    """A colour of each breed's own."""
    hue = BREEDS.index(breed) / len(BREEDS)
    return tuple(round(255 * c) for c in colorsys.hsv_to_rgb(hue, 1.0, 0.9))  # type: ignore[return-value]


def photo(path: Path, breed: Breed, size: tuple[int, int] = (50, 40), **options: object) -> None:
    """One image of the breed's colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color_of(breed)).save(path, **{"quality": 95, **options})


def write_pets(
    folder: Path, names: Sequence[str] = FOUR, train: int = 3, test: int = 2, flat: bool = False
) -> Path:
    """Both sets with `train` + `test` images of each class; flat: ImageNet's val in one folder."""
    breeds = Pets(classes=list(names)).breeds()
    write_imagenet(folder / "imagenet", breeds, train, 0 if flat else test)
    if flat:
        write_flat_val(folder / "imagenet" / "val", breeds, test)
    write_vgg(folder / "oxford-iiit-pet", breeds, train, test)
    return folder


def write_imagenet(folder: Path, breeds: Sequence[Breed], train: int, val: int) -> None:
    for breed in breeds:
        for split, count in (("train", train), ("val", val)):
            for number in range(count):
                photo(folder / split / breed.synset / f"{breed.synset}_{number}.JPEG", breed)


def numbers_of(breed: Breed, count: int) -> list[int]:
    """Which of the 50,000 validation images show the breed, in `ground_truth()`."""
    return [breed.ilsvrc_id + 1000 * k for k in range(count)]


def ground_truth() -> list[int]:
    """A devkit's list: validation image n is of class (n − 1) % 1000 + 1."""
    return (np.arange(50_000) % 1000 + 1).tolist()


def write_flat_val(folder: Path, breeds: Sequence[Breed], count: int) -> None:
    for breed in breeds:
        for number in numbers_of(breed, count):
            photo(folder / f"ILSVRC2012_val_{number:08d}.JPEG", breed)


def write_vgg(folder: Path, breeds: Sequence[Breed], train: int, test: int) -> None:
    """With cats' names capitalised, as there."""
    lines: dict[str, list[str]] = {"trainval.txt": [], "test.txt": []}
    for breed in breeds:
        is_cat = "cat" in breed.words.split()
        stem = breed.name.title() if is_cat else breed.name
        for number in range(train + test):
            name = f"{stem}_{number + 1}"
            photo(folder / "images" / f"{name}.jpg", breed)
            of = "trainval.txt" if number < train else "test.txt"
            lines[of].append(f"{name} {BREEDS.index(breed) + 1} {1 if is_cat else 2} 1")
    (folder / "annotations").mkdir(parents=True, exist_ok=True)
    for file, rows in lines.items():
        (folder / "annotations" / file).write_text("\n".join([*rows, ""]))
