"""`data=pets`: the 24 breeds that ImageNet and Oxford-IIIT Pet (VGG) share, the paper's first
experiment.

ImageNet lies in class folders, train/SYNSET/* and val/SYNSET/*; its val is the test split, since
the labels of ILSVRC's own test set are not published. torchvision fetches Oxford-IIIT Pet:
images/NAME_1.jpg …, and annotations/trainval.txt (which trains) and test.txt, whose lines are
"NAME_1 class species breed". Images that are in neither list are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from robustmd.config.ranges import CLASSES, IMAGE_SIDE
from robustmd.domains.digits import fetching
from robustmd.domains.domain_set import DomainSet, Views
from robustmd.domains.image_files import SUFFIXES, domain_of, given_splits, prepare, table_of
from robustmd.errors import UserError, listed, printable, readable
from robustmd.registry import Data, DataFacts, data, key

if TYPE_CHECKING:
    import pandas as pd

ROTATIONS = tuple(f"rotate_{degrees}" for degrees in range(45, 360, 45))
EXPANSION = ("identity", "flip_horizontal", "flip_vertical", *ROTATIONS)  # ×10
IMAGENET, VGG = "imagenet", "vgg"
VGG_FOLDER = "oxford-iiit-pet"
SOURCES = {  # domain: origin and licence
    IMAGENET: (
        "ImageNet (ILSVRC2012), classes shared with Oxford-IIIT Pet; its val is the test split",
        "ImageNet terms: non-commercial research and education",
    ),
    VGG: ("Oxford-IIIT Pet (Parkhi et al. 2012), trainval.txt and test.txt", "CC BY-SA 4.0"),
}
# Oxford-IIIT Pet's name in lower case, which is the class's name here: the WordNet id that names
# ILSVRC2012's folder. In the order of the labels.
BREEDS: Mapping[str, str] = {
    "basset_hound": "n02088238",
    "beagle": "n02088364",
    "boxer": "n02108089",
    "chihuahua": "n02085620",
    "egyptian_mau": "n02124075",
    "english_cocker_spaniel": "n02102318",
    "english_setter": "n02100735",
    "german_shorthaired": "n02100236",
    "great_pyrenees": "n02111500",
    "japanese_chin": "n02085782",
    "keeshond": "n02112350",
    "leonberger": "n02111129",
    "miniature_pinscher": "n02107312",
    "newfoundland": "n02111277",
    "persian": "n02123394",
    "pomeranian": "n02112018",
    "pug": "n02110958",
    "saint_bernard": "n02109525",
    "samoyed": "n02111889",
    "scottish_terrier": "n02097298",
    "siamese": "n02123597",
    "staffordshire_bull_terrier": "n02093256",
    "wheaten_terrier": "n02098105",
    "yorkshire_terrier": "n02094433",
}


@data("pets", page="pets", order=4)
class Pets(Data):
    """ImageNet against Oxford-IIIT Pet: photos of 24 breeds, of which the model sees a crop.

    VGG's training images count tenfold (`EXPANSION`), as the paper expands them; nothing is stored
    more than once.
    """

    classes: list[str] = key([], CLASSES, "of the 24, at least two; none: all")
    size: int = key(256, IMAGE_SIDE, "pixels of the shorter side; a square is stored")
    crop: int | None = key(None, IMAGE_SIDE, "pixels that the model sees; null: size·224/256")
    skip_unreadable: bool = key(False, help="leave out what cannot be read, with a note")

    def model_post_init(self, _: object) -> None:
        """The order of `classes` means nothing; a crop that is left out is 224 of 256 pixels."""
        self.classes = sorted(set(self.classes))
        if self.crop is None:
            self.crop = max(1, round(self.size * 224 / 256))

    def check(self) -> None:
        if self.crop is not None and self.crop > self.size:
            raise UserError(f"data.crop={self.crop}: must be from 1 to data.size={self.size}")
        unknown = [name for name in self.classes if name not in BREEDS]
        if unknown or len(self.breeds()) < 2:
            fault = f"no class {unknown[0]!r}" if unknown else "one class; two are needed"
            raise UserError(
                f"data.classes=[{','.join(self.classes)}]: {fault}; allowed are {', '.join(BREEDS)}"
            )

    def breeds(self) -> tuple[str, ...]:
        """The names of `classes`, or all, in the table's order, which is that of the labels."""
        return tuple(name for name in BREEDS if name in self.classes or not self.classes)

    def names(self) -> tuple[str, ...]:
        return tuple(SOURCES)

    def at_hand(self, folder: Path) -> Mapping[str, bool]:
        places = {"ImageNet": folder / IMAGENET / "train", "VGG": folder / VGG_FOLDER / "images"}
        return {part: place.is_dir() for part, place in places.items()}

    def load(self, facts: DataFacts) -> DomainSet:
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at. Raises UserError."""
        breeds, folder = self.breeds(), facts.folder("data")
        listing = {IMAGENET: list_imagenet, VGG: list_vgg}  # ImageNet first: it is not fetched
        found = [file for name in domains for file in listing[name](folder, breeds)]
        store, files, notes = prepare(
            "pets", folder, table_of(found), breeds, self.size, facts, skip=self.skip_unreadable
        )
        loaded = []
        for name in domains:
            own = files[(files["domain"] == name) & files["readable"]]
            _check_classes(name, own, breeds)
            seen = Views(crop=self.crop)
            views = {"train": Views(EXPANSION, self.crop) if name == VGG else seen, "test": seen}
            loaded.append(domain_of(store, name, given_splits(own), views, *SOURCES[name]))
        paths = files["path"].tolist()
        return DomainSet.of("pets", loaded, breeds, notes, facts.say, paths)


def _check_classes(domain: str, files: pd.DataFrame, breeds: Sequence[str]) -> None:
    """Both splits have an image of every class. Raises UserError."""
    present = set(zip(files["split"], files["label"], strict=True))
    lacking = [
        f"{breed} ({BREEDS[breed]}) in {split}"
        for split in ("train", "test")
        for breed in breeds
        if (split, breed) not in present
    ]
    if lacking:
        raise UserError(
            f"domain {domain} has no image that can be read of {len(lacking)} classes and splits: "
            f"{listed(lacking)}; add them, or choose other classes with data.classes=[…]"
        )


def list_imagenet(data_dir: Path, breeds: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Domain, class, split and path below data_dir of each file. Raises UserError: no folder."""
    folder = data_dir / IMAGENET
    if not (folder / "train").is_dir():
        raise UserError(
            f"data=pets lacks ImageNet, which belongs into {printable(folder)} and may not be "
            "fetched by a program: ask for access at https://image-net.org, then put ILSVRC2012's "
            "train/SYNSET/*.JPEG and val/SYNSET/*.JPEG there (docs/pets.md says how); meanwhile "
            "data=digits_mini needs no files"
        )
    return [
        (IMAGENET, breed, split, path.relative_to(data_dir).as_posix())
        for split, part in (("train", "train"), ("test", "val"))
        for breed in breeds
        for path in sorted((folder / part / BREEDS[breed]).glob("*"))
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    ]


def list_vgg(data_dir: Path, breeds: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """The same of the files that the lists name. Raises UserError: it cannot be had."""
    folder = data_dir / VGG_FOLDER
    missing = [folder / name for name in ("images", "annotations") if not (folder / name).is_dir()]
    if missing:
        from torchvision.datasets import OxfordIIITPet  # noqa: PLC0415 - takes seconds

        with fetching("data=pets", missing):
            OxfordIIITPet(data_dir, download=True)
    files = []
    for split, name in (("train", "trainval.txt"), ("test", "test.txt")):
        with readable(folder / "annotations" / name):
            lines = (folder / "annotations" / name).read_text("ascii", "replace").splitlines()
        for photo in (line.split()[0] for line in lines if line.strip() and line[0] != "#"):
            breed = photo.rpartition("_")[0].lower()
            if breed in breeds:
                files.append((VGG, breed, split, f"{VGG_FOLDER}/images/{photo}.jpg"))
    return files
