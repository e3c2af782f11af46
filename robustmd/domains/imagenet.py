"""ImageNet's pets: ILSVRC2012's images of the shared breeds, found under paths.data.

train/SYNSET/* and val/SYNSET/*, or the validation images as they are published, all in val/, with
a list of what they show: the devkit's ground truth, a class number (1…1000) a line in the order of
the images, or the table LOC_val_solution.csv of Kaggle's packing. The devkit's meta.mat need not be
read: the numbers of our breeds are in breeds.py. Only the chosen breeds' folders are looked into.
The validation images are the test split: labels of ILSVRC's own test set are not published.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from robustmd.domains.breeds import Breed
from robustmd.domains.checksums import stamp_of
from robustmd.domains.decoding import SUFFIXES
from robustmd.domains.listing import Listed, few, shown
from robustmd.errors import UserError

NAME = "imagenet"
FOLDERS = ("imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC")  # below paths.data
SPLITS = {"train": "train", "test": "val"}  # ours → ILSVRC2012's folder
VALIDATION_IMAGES = 50  # of each class
IMAGES = 50_000
MAX_BYTES = 1 << 25  # the longer list has 3 MB
DEVKIT = "ILSVRC2012_validation_ground_truth.txt"
TABLE = "LOC_val_solution.csv"
PLACES = (f"ILSVRC2012_devkit_t12/data/{DEVKIT}", f"data/{DEVKIT}", DEVKIT, TABLE)
_NUMBER = re.compile(r"[1-9][0-9]{0,3} *")
_CELL = re.compile(r"ILSVRC2012_val_([0-9]{8}),(n[0-9]{8}) [ n0-9-]*")  # a synset for each box
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
    of_number = _validation_classes([folder, data_dir], breeds)
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


def _validation_classes(folders: Sequence[Path], breeds: Sequence[Breed]) -> dict[int, Breed]:
    """Image number (1…50000) → breed, for the images of these breeds.

    folders: where one of `PLACES` is looked for. Raises UserError if it is in none of them, or is
    not ILSVRC2012's: 50,000 images, 50 of each of 1,000 classes.
    """
    for folder in folders:
        for place in PLACES:
            path = folder / place
            if path.is_file():
                return _chosen(path, breeds)
    raise UserError(
        f"the images in {shown(folders[0] / 'val')} are not in class folders, and no list of their "
        f"classes is beside it: put the devkit's {PLACES[0]} or Kaggle's {TABLE} into "
        f"{shown(folders[0])}, or sort them into val/SYNSET/"
    )


def _chosen(path: Path, breeds: Sequence[Breed]) -> dict[int, Breed]:
    """Image number → breed. Raises UserError for a list that is not ILSVRC2012's."""
    try:
        with path.open("rb") as file:
            lines = file.read(MAX_BYTES).decode("ascii", "replace").splitlines()
    except OSError as error:
        raise UserError(f"cannot read {shown(path)} ({error.strerror})") from error
    is_table = path.name == TABLE
    classes = _table(lines) if is_table else _devkit(lines)
    if classes is None:
        raise UserError(f"{shown(path)} is no list of the classes of ILSVRC2012's validation set")
    counts = Counter(classes.values())
    if set(classes) != set(range(1, IMAGES + 1)) or set(counts.values()) != {VALIDATION_IMAGES}:
        raise UserError(
            f"{shown(path)} is not ILSVRC2012's: it lists {len(classes):,} images of "
            f"{len(counts):,} classes, where 50 of each of 1,000 classes are due"
        )
    names = {breed.synset if is_table else str(breed.ilsvrc_id): breed for breed in breeds}
    return {number: names[name] for number, name in classes.items() if name in names}


def _devkit(lines: Sequence[str]) -> Mapping[int, str] | None:
    """Image number → class number, as text."""
    if not all(_NUMBER.fullmatch(line) for line in lines):
        return None
    return {number: line.strip() for number, line in enumerate(lines, start=1)}


def _table(lines: Sequence[str]) -> Mapping[int, str] | None:
    """Image number → synset."""
    cells = [_CELL.fullmatch(line) for line in lines[1:]]
    if lines[:1] != ["ImageId,PredictionString"] or not all(cells):
        return None
    return {int(cell[1]): cell[2] for cell in cells if cell}
