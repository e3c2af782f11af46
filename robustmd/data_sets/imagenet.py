"""ImageNet's pets: ILSVRC2012's images of the breeds that Oxford-IIIT Pet has too.

train/SYNSET/* and val/SYNSET/*, or the validation images as they are published, all in val/, with
a list of what they show: the devkit's ground truth, a class number (1…1000) a line in the order of
the images, or the table LOC_val_solution.csv of Kaggle's packing. The devkit's meta.mat need not be
read: the numbers of our breeds are here. Only the chosen breeds' folders are looked into.
The validation images are the test split: labels of ILSVRC's own test set are not published.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustmd.domains.checksums import stamp_of
from robustmd.domains.decoding import SUFFIXES
from robustmd.domains.listing import Listed, shown
from robustmd.errors import UserError, readable

NAME = "imagenet"
FOLDERS = ("imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC")  # below paths.data
SPLITS = {"train": "train", "test": "val"}  # ours → ILSVRC2012's folder
VALIDATION_IMAGES = 50  # of each class
DEVKIT = "ILSVRC2012_validation_ground_truth.txt"
TABLE = "LOC_val_solution.csv"
PLACES = (f"ILSVRC2012_devkit_t12/data/{DEVKIT}", f"data/{DEVKIT}", DEVKIT, TABLE)
_CELL = re.compile(r"ILSVRC2012_val_([0-9]{8}),(n[0-9]{8}) ")  # then boxes
ORIGIN = "ImageNet (ILSVRC2012), classes shared with Oxford-IIIT Pet; its val is the test split"
LICENCE = "ImageNet terms: non-commercial research and education"


@dataclass(frozen=True)
class Breed:
    """name: Oxford-IIIT Pet's, in lower case, which is the class's name here
    synset, words: ILSVRC2012's WordNet id, which names the class's folder, and its name
    ilsvrc_id: 1…1000, the class's number in the devkit's ground truth of the validation images
    """

    name: str
    synset: str
    words: str
    ilsvrc_id: int


BREEDS = (  # in the order of the labels
    Breed("basset_hound", "n02088238", "basset", 161),
    Breed("beagle", "n02088364", "beagle", 132),
    Breed("boxer", "n02108089", "boxer", 130),
    Breed("chihuahua", "n02085620", "Chihuahua", 173),
    Breed("egyptian_mau", "n02124075", "Egyptian cat", 8),
    Breed("english_cocker_spaniel", "n02102318", "cocker spaniel", 191),
    Breed("english_setter", "n02100735", "English setter", 2),
    Breed("german_shorthaired", "n02100236", "German short-haired pointer", 134),
    Breed("great_pyrenees", "n02111500", "Great Pyrenees", 172),
    Breed("japanese_chin", "n02085782", "Japanese spaniel", 99),
    Breed("keeshond", "n02112350", "keeshond", 148),
    Breed("leonberger", "n02111129", "Leonberg", 133),
    Breed("miniature_pinscher", "n02107312", "miniature pinscher", 187),
    Breed("newfoundland", "n02111277", "Newfoundland", 60),
    Breed("persian", "n02123394", "Persian cat", 10),
    Breed("pomeranian", "n02112018", "Pomeranian", 118),
    Breed("pug", "n02110958", "pug", 143),
    Breed("saint_bernard", "n02109525", "Saint Bernard", 177),
    Breed("samoyed", "n02111889", "Samoyed", 179),
    Breed("scottish_terrier", "n02097298", "Scotch terrier", 109),
    Breed("siamese", "n02123597", "Siamese cat", 95),
    Breed("staffordshire_bull_terrier", "n02093256", "Staffordshire bullterrier", 45),
    Breed("wheaten_terrier", "n02098105", "soft-coated wheaten terrier", 26),
    Breed("yorkshire_terrier", "n02094433", "Yorkshire terrier", 59),
)


def list_imagenet(data_dir: Path, breeds: Sequence[Breed]) -> tuple[list[Listed], list[str]]:
    """The files of the breeds, with paths below data_dir, and notes on what is not as published.

    Raises UserError: there is no such folder, or the flat validation images come without a list of
    their classes.
    """
    there = [data_dir / name for name in FOLDERS if (data_dir / name / "train").is_dir()]
    if not there:
        raise UserError(
            f"data=pets lacks ImageNet, which belongs into {shown(data_dir / FOLDERS[0])} and may "
            "not be fetched by a program: ask for access at https://image-net.org, then put "
            "ILSVRC2012's train/SYNSET/*.JPEG and val/ there (docs/pets.md says how); meanwhile "
            "data=digits_mini needs no files"
        )
    folder = there[0]
    images = [
        (breed, split, path)
        for split, name in SPLITS.items()
        for breed in breeds
        for path in _images(folder / name / breed.synset)
    ]
    if not any(split == "test" for _, split, _ in images) and any(_images(folder / "val")):
        classes = _validation_classes([folder, data_dir], breeds)
        for number, breed in sorted(classes.items()):
            path = folder / "val" / f"ILSVRC2012_val_{number:08d}.JPEG"
            images += [(breed, "test", path)] if path.is_file() else []
    files = [
        Listed(NAME, breed.name, split, path.relative_to(data_dir).as_posix(), stamp_of(path))
        for breed, split, path in images
    ]
    held, whole = sum(f.split == "test" for f in files), VALIDATION_IMAGES * len(breeds)
    notes = [
        f"ImageNet: {held:,} validation images of {len(breeds)} classes in {shown(folder)}; "
        f"ILSVRC2012 has {whole:,}: it is another set or a part of it"
    ]
    return files, notes if held != whole else []


def _images(folder: Path) -> Iterator[Path]:
    """The images in a folder; none where there is no folder."""
    with readable(folder):
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return (p for p in paths if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))


def _validation_classes(folders: Sequence[Path], breeds: Sequence[Breed]) -> dict[int, Breed]:
    """Image number (1…50000) → breed, for the images of these breeds.

    folders: where one of `PLACES` is looked for. Raises UserError if it is in none of them, or is
    not ILSVRC2012's: 50,000 images, 50 of each of 1,000 classes.
    """
    found = [path for folder in folders for place in PLACES if (path := folder / place).is_file()]
    if not found:
        raise UserError(
            f"the images in {shown(folders[0] / 'val')} are not in class folders, and no list of "
            f"their classes is beside it: put the devkit's {PLACES[0]} or Kaggle's {TABLE} into "
            f"{shown(folders[0])}, or sort them into val/SYNSET/"
        )
    path = found[0]
    with readable(path):
        lines = path.read_text("ascii", errors="replace").splitlines()
    if path.name == TABLE:
        classes = {int(cell[1]): cell[2] for line in lines if (cell := _CELL.match(line))}
        names = {breed.synset: breed for breed in breeds}
    else:
        classes = {number: line.strip() for number, line in enumerate(lines, start=1)}
        names = {str(breed.ilsvrc_id): breed for breed in breeds}
    counts = Counter(classes.values())
    if set(classes) != set(range(1, 50_001)) or set(counts.values()) != {VALIDATION_IMAGES}:
        raise UserError(
            f"{shown(path)} is not ILSVRC2012's: it lists {len(classes):,} images of "
            f"{len(counts):,} classes, where 50 of each of 1,000 classes are due"
        )
    return {number: names[name] for number, name in classes.items() if name in names}
