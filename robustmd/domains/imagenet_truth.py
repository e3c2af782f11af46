"""What ILSVRC2012's 50,000 validation images show, where they lie all in one folder.

Either of two lists will do: the devkit's ground truth, a class number (1…1000) a line in the order
of the images, or the table LOC_val_solution.csv that comes with the images in Kaggle's packing. The
devkit's meta.mat, which gives the numbers their synsets, need not be read: those of our breeds are
in breeds.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from robustmd.domains.breeds import Breed
from robustmd.domains.listing import shown
from robustmd.errors import UserError

IMAGES, CLASSES = 50_000, 1000
MAX_BYTES = 1 << 25  # the longer list has 3 MB
DEVKIT = "ILSVRC2012_validation_ground_truth.txt"
TABLE = "LOC_val_solution.csv"
PLACES = (f"ILSVRC2012_devkit_t12/data/{DEVKIT}", f"data/{DEVKIT}", DEVKIT, TABLE)
_NUMBER = re.compile(r"[1-9][0-9]{0,3} *")
_CELL = re.compile(r"ILSVRC2012_val_([0-9]{8}),(n[0-9]{8}) [ n0-9-]*")  # a synset for each box


def validation_classes(folders: Sequence[Path], breeds: Sequence[Breed]) -> dict[int, Breed]:
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
    is_table = path.name == TABLE
    parse = _table if is_table else _devkit
    classes = _checked(path, parse)
    names = {breed.synset if is_table else str(breed.ilsvrc_id): breed for breed in breeds}
    return {number: names[name] for number, name in classes.items() if name in names}


def _checked(
    path: Path, parse: Callable[[Sequence[str]], Mapping[int, str] | None]
) -> Mapping[int, str]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES)
    except OSError as error:
        raise UserError(f"cannot read {shown(path)} ({error.strerror})") from error
    classes = parse(raw.decode("ascii", "replace").splitlines())
    if classes is None:
        raise UserError(f"{shown(path)} is no list of the classes of ILSVRC2012's validation set")
    counts = Counter(classes.values())
    if set(classes) != set(range(1, IMAGES + 1)) or set(counts.values()) != {IMAGES // CLASSES}:
        raise UserError(
            f"{shown(path)} is not ILSVRC2012's: it lists {len(classes):,} images of "
            f"{len(counts):,} classes, where 50 of each of 1,000 classes are due"
        )
    return classes


def _devkit(lines: Sequence[str]) -> dict[int, str] | None:
    """Image number → class number, as text."""
    if not all(_NUMBER.fullmatch(line) for line in lines):
        return None
    return {number: line.strip() for number, line in enumerate(lines, start=1)}


def _table(lines: Sequence[str]) -> dict[int, str] | None:
    """Image number → synset."""
    cells = [_CELL.fullmatch(line) for line in lines[1:]]
    if lines[:1] != ["ImageId,PredictionString"] or not all(cells):
        return None
    return {int(cell[1]): cell[2] for cell in cells if cell}
