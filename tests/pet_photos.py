"""A small data folder of both pets' sets, in the layouts that users have; imported by name."""

import colorsys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from robustmd.domains.pets import BREEDS, Pets

FOUR = ("chihuahua", "egyptian_mau", "persian", "yorkshire_terrier")
CATS = {"egyptian_mau", "persian", "siamese"}


def color_of(breed: str) -> tuple[int, int, int]:
    """A colour of each breed's own."""
    hue = [*BREEDS].index(breed) / len(BREEDS)
    return tuple(round(255 * c) for c in colorsys.hsv_to_rgb(hue, 1.0, 0.9))  # type: ignore[return-value]


def photo(path: Path, breed: str, size: tuple[int, int] = (50, 40), **options: object) -> None:
    """One image of the breed's colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color_of(breed)).save(path, **{"quality": 95, **options})


def write_pets(folder: Path, names: Sequence[str] = FOUR, train: int = 3, test: int = 2) -> Path:
    """Both sets with `train` + `test` images of each class."""
    breeds = Pets(classes=list(names)).breeds()
    write_imagenet(folder / "imagenet", breeds, train, test)
    write_vgg(folder / "oxford-iiit-pet", breeds, train, test)
    return folder


def write_imagenet(folder: Path, breeds: Sequence[str], train: int, val: int) -> None:
    for breed in breeds:
        for split, count in (("train", train), ("val", val)):
            for number in range(count):
                photo(folder / split / BREEDS[breed] / f"{BREEDS[breed]}_{number}.JPEG", breed)


def write_vgg(folder: Path, breeds: Sequence[str], train: int, test: int) -> None:
    """With cats' names capitalised, as there."""
    lines: dict[str, list[str]] = {"trainval.txt": [], "test.txt": []}
    for breed in breeds:
        is_cat = breed in CATS
        stem = breed.title() if is_cat else breed
        for number in range(train + test):
            name = f"{stem}_{number + 1}"
            photo(folder / "images" / f"{name}.jpg", breed)
            of = "trainval.txt" if number < train else "test.txt"
            lines[of].append(f"{name} {[*BREEDS].index(breed) + 1} {1 if is_cat else 2} 1")
    (folder / "annotations").mkdir(parents=True, exist_ok=True)
    for file, rows in lines.items():
        (folder / "annotations" / file).write_text("\n".join([*rows, ""]))
