"""ImageNet's pets: ILSVRC2012's images of the shared breeds, found under paths.data.

train/SYNSET/* and val/SYNSET/*, or the validation images as they are published, all in val/, with
the list that says what they show (see imagenet_truth.py). Only the chosen breeds' folders are
looked into. The validation images are the test split: labels of ILSVRC's own test set are not
published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from robustmd.domains.breeds import Breed
from robustmd.domains.checksums import stamp_of
from robustmd.domains.decoding import SUFFIXES
from robustmd.domains.imagenet_truth import validation_classes
from robustmd.domains.listing import Listed, few, shown
from robustmd.errors import UserError

NAME = "imagenet"
FOLDERS = ("imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC")  # below paths.data
SPLITS = {"train": "train", "test": "val"}  # ours → ILSVRC2012's folder
VALIDATION_IMAGES = 50  # of each class
ORIGIN = "ImageNet (ILSVRC2012), classes shared with Oxford-IIIT Pet; its val is the test split"
LICENCE = "ImageNet terms: non-commercial research and education"
HOW_TO_GET = (
    "ImageNet may not be fetched by a program: ask for access at https://image-net.org, then put "
    "ILSVRC2012's train/SYNSET/*.JPEG and val/ there (docs/pets.md says how); meanwhile "
    "data=digits_mini needs no files"
)


def list_imagenet(data_dir: Path, breeds: Sequence[Breed]) -> tuple[list[Listed], list[str]]:
    """The files of the breeds, with paths below data_dir, and notes on what is not as published.

    Raises UserError: there is no such folder, a class has no image in a split, or the flat
    validation images come without a list of their classes.
    """
    folder = _folder(data_dir)
    files = [*_in_class_folders(folder / "train", data_dir, breeds, "train")]
    if _is_flat(folder / "val", breeds):
        files += _flat(folder, data_dir, breeds)
    else:
        files += _in_class_folders(folder / "val", data_dir, breeds, "test")
    _check_whole(files, folder, breeds)
    held = sum(file.split == "test" for file in files)
    notes = []
    if held != VALIDATION_IMAGES * len(breeds):
        notes = [
            f"ImageNet: {held:,} validation images of {len(breeds)} classes in {shown(folder)}; "
            f"ILSVRC2012 has {VALIDATION_IMAGES * len(breeds):,}: it is another set or a part of it"
        ]
    return files, notes


def _folder(data_dir: Path) -> Path:
    for name in FOLDERS:
        if (data_dir / name / "train").is_dir():
            return data_dir / name
    raise UserError(
        f"data=pets lacks ImageNet, which belongs into {shown(data_dir / FOLDERS[0])}; {HOW_TO_GET}"
    )


def _in_class_folders(
    folder: Path, data_dir: Path, breeds: Sequence[Breed], split: str
) -> Iterator[Listed]:
    for breed in breeds:
        for path in _entries(folder / breed.synset):
            if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
                yield _listed(path, data_dir, breed, split)


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing where there is none."""
    try:
        return sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UserError(f"cannot read {shown(folder)} ({error.strerror})") from error


def _is_flat(folder: Path, breeds: Sequence[Breed]) -> bool:
    """Whether val/ holds the images themselves: no folder of any of the breeds, but an image."""
    if any((folder / breed.synset).is_dir() for breed in breeds):
        return False
    return any(path.suffix.lower() in SUFFIXES for path in _entries(folder))


def _flat(folder: Path, data_dir: Path, breeds: Sequence[Breed]) -> Iterator[Listed]:
    """The breeds' images among ILSVRC2012_val_00000001.JPEG to …00050000.JPEG."""
    of_number = validation_classes([folder, data_dir], breeds)
    for number, breed in sorted(of_number.items()):
        path = folder / "val" / f"ILSVRC2012_val_{number:08d}.JPEG"
        if path.is_file():
            yield _listed(path, data_dir, breed, "test")


def _listed(path: Path, data_dir: Path, breed: Breed, split: str) -> Listed:
    relative = path.relative_to(data_dir).as_posix()
    return Listed(NAME, breed.name, split, relative, stamp_of(path))


def _check_whole(files: Sequence[Listed], folder: Path, breeds: Sequence[Breed]) -> None:
    """Every class has an image in both splits. Raises UserError naming those that have none."""
    there = {(file.split, file.label) for file in files}
    lacking = [
        f"{breed.name} in {name}/{breed.synset}"
        for split, name in SPLITS.items()
        for breed in breeds
        if (split, breed.name) not in there
    ]
    if lacking:
        raise UserError(
            f"domain {NAME} has no image of {len(lacking)} of {2 * len(breeds)} classes and "
            f"splits: {few(lacking)} (in {shown(folder)}); add them, or choose other classes with "
            f"data.classes=[…]; {HOW_TO_GET.partition(';')[0]}"
        )
