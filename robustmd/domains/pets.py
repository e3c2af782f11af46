"""`data=pets`: the 24 breeds that ImageNet and Oxford-IIIT Pet (VGG) share, the paper's first
experiment.

ImageNet lies in class folders, train/SYNSET/* and val/SYNSET/*; its val is the test split, since
the labels of ILSVRC's own test set are not published. torchvision fetches Oxford-IIIT Pet:
images/NAME_1.jpg …, and annotations/trainval.txt (which trains) and test.txt, whose lines are
"NAME_1 class species breed". Images that are in neither list are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from robustmd.config.ranges import CLASSES, IMAGE_SIDE
from robustmd.domains.digits import fetching
from robustmd.domains.domain_set import DomainSet, Views
from robustmd.domains.folder import SUFFIXES, File, domain_of, given_splits, prepare
from robustmd.errors import UserError, listed, printable, readable
from robustmd.registry import Data, DataFacts, data, key

BYTES = 811_092_049  # Oxford-IIIT Pet; ImageNet is not fetched
ROTATIONS = tuple(f"rotate_{degrees}" for degrees in range(45, 360, 45))
EXPANSION = ("identity", "flip_horizontal", "flip_vertical", *ROTATIONS)  # ×10
IMAGENET, VGG = "imagenet", "vgg"
IMAGENET_FOLDERS = ("imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC")  # of paths.data
IMAGENET_SPLITS = {"train": "train", "test": "val"}  # ours → ILSVRC2012's folder
VALIDATION_IMAGES = 50  # of each class
VGG_FOLDER = "oxford-iiit-pet"
VGG_LISTS = {  # images of all 37 breeds
    "train": ("trainval.txt", 3_680),
    "test": ("test.txt", 3_669),
}
IMAGENET_TERMS = "ImageNet terms: non-commercial research and education"
SOURCES = {  # domain: origin and licence
    IMAGENET: (
        "ImageNet (ILSVRC2012), classes shared with Oxford-IIIT Pet; its val is the test split",
        IMAGENET_TERMS,
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
        self.breeds()

    def breeds(self) -> tuple[str, ...]:
        """The names of `classes`, or all, in the table's order, which is that of the labels.

        Raises UserError for a name that is none, and for fewer than two.
        """
        chosen = tuple(name for name in BREEDS if name in self.classes or not self.classes)
        unknown = [name for name in self.classes if name not in BREEDS]
        if unknown or len(chosen) < 2:
            fault = f"no class {unknown[0]!r}" if unknown else "one class; two are needed"
            raise UserError(
                f"data.classes=[{','.join(self.classes)}]: {fault}; allowed are {', '.join(BREEDS)}"
            )
        return chosen

    def names(self) -> tuple[str, ...]:
        return tuple(SOURCES)

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        present = {
            "ImageNet": any((folder / name / "train").is_dir() for name in IMAGENET_FOLDERS),
            "VGG": (folder / VGG_FOLDER / "images").is_dir(),
        }
        return f"{IMAGENET_TERMS}; VGG {SOURCES[VGG][1]}", BYTES, present

    def load(self, facts: DataFacts) -> DomainSet:
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at. Raises UserError."""
        breeds, data_dir = self.breeds(), facts.folder("data")
        files: list[File] = []
        notes: list[str] = []
        for name in domains:  # ImageNet first: before hours of fetching
            own, note = (list_imagenet if name == IMAGENET else list_vgg)(data_dir, breeds)
            _check_classes(name, own, breeds)
            files, notes = [*files, *own], [*notes, *note]
        files, store, readable, more = prepare(
            "pets", data_dir, files, breeds, self.size, facts, skip=self.skip_unreadable
        )
        loaded = []
        for name, rows in readable.items():
            _check_classes(name, [files[row] for row in rows], breeds)
            source, licence = SOURCES[name]
            seen = Views(crop=self.crop)
            views = {"train": Views(EXPANSION, self.crop) if name == VGG else seen, "test": seen}
            splits = given_splits(rows, files)
            loaded.append(domain_of(store, name, splits, views, source=source, licence=licence))
        paths = [file.path for file in files]
        return DomainSet.of("pets", loaded, breeds, [*notes, *more], facts.say, paths)


def _check_classes(domain: str, files: Iterable[File], breeds: Sequence[str]) -> None:
    """Both splits have an image of every class. Raises UserError."""
    present = {(file.split, file.label) for file in files}
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


def list_imagenet(data_dir: Path, breeds: Sequence[str]) -> tuple[list[File], list[str]]:
    """The files of the breeds, with paths below data_dir, and notes on what is not as published.
    Raises UserError where there is no such folder."""
    folders = [data_dir / name for name in IMAGENET_FOLDERS]
    folder = next((folder for folder in folders if (folder / "train").is_dir()), None)
    if folder is None:
        raise UserError(
            f"data=pets lacks ImageNet, which belongs into {printable(folders[0])} and may not be "
            "fetched by a program: ask for access at https://image-net.org, then put ILSVRC2012's "
            "train/SYNSET/*.JPEG and val/SYNSET/*.JPEG there (docs/pets.md says how); meanwhile "
            "data=digits_mini needs no files"
        )
    files = [
        File(IMAGENET, breed, split, path.relative_to(data_dir).as_posix())
        for split, part in IMAGENET_SPLITS.items()
        for breed in breeds
        for path in sorted((folder / part / BREEDS[breed]).glob("*"))
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    ]
    tested, published = sum(f.split == "test" for f in files), VALIDATION_IMAGES * len(breeds)
    note = (
        f"ImageNet: {tested:,} validation images of {len(breeds)} classes in {printable(folder)}; "
        f"ILSVRC2012 has {published:,}: it is another set or a part of it"
    )
    return files, [note] if tested != published else []


def list_vgg(data_dir: Path, breeds: Sequence[str]) -> tuple[list[File], list[str]]:
    """The listed files of the breeds, with paths below data_dir, and notes on what is not as
    published. Raises UserError: it cannot be had, or a list is none of Oxford-IIIT Pet's."""
    folder = data_dir / VGG_FOLDER
    missing = [folder / name for name in ("images", "annotations") if not (folder / name).is_dir()]
    if missing:
        from torchvision.datasets import OxfordIIITPet  # noqa: PLC0415 - takes seconds

        with fetching("data=pets", missing):
            OxfordIIITPet(data_dir, download=True)
    files, notes = [], []
    for split, (name, published) in VGG_LISTS.items():
        path = folder / "annotations" / name
        with readable(path):
            lines = path.read_text("ascii", errors="replace").splitlines()
        names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
        for photo in names:
            breed = photo.rpartition("_")[0].lower()
            if breed in breeds:
                files.append(File(VGG, breed, split, f"{VGG_FOLDER}/images/{photo}.jpg"))
        if len(names) != published:
            notes.append(
                f"VGG: {name} lists {len(names):,} images, the published one {published:,}: it is "
                "another split or a part of it"
            )
    return files, notes
