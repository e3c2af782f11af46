"""`data=pets`: the 24 breeds that ImageNet and Oxford-IIIT Pet (VGG) share, the paper's first
experiment.

VGG's set lies as torchvision lays it out, below paths.data, or is fetched there: images/NAME_1.jpg
…, and annotations/trainval.txt (which trains) and test.txt, whose lines are "NAME_1 class species
breed", the breed's number within its species. Images that are in neither list are left alone, as
are the MATLAB files among the images.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from robustmd.config.ranges import CLASSES, IMAGE_SIDE
from robustmd.data_sets import imagenet
from robustmd.data_sets.imagenet import BREEDS, Breed
from robustmd.domains.checksums import stamp_of
from robustmd.domains.domain import CC_BY_SA_4, DomainSet
from robustmd.domains.examples import VARIANTS, Views
from robustmd.domains.listing import Listed, Listing, shown
from robustmd.domains.prepared_images import Prepared, notes_on_files, prepare
from robustmd.domains.published import fetch_missing, filled, origin
from robustmd.errors import Say, UserError, listed, readable
from robustmd.registry import DataFacts, Settings, data, key
from robustmd.runs.lock import held

BYTES = 811_092_049  # Oxford-IIIT Pet; ImageNet is not fetched
EXPANSION = tuple(VARIANTS)  # identity, both flips, rotations by 45°, …, 315°: ×10
VGG = "vgg"
VGG_FOLDER = "oxford-iiit-pet"  # below paths.data
VGG_LISTS = {
    "train": ("trainval.txt", 3_680),
    "test": ("test.txt", 3_669),
}  # images of all 37 breeds
VGG_ORIGIN = "Oxford-IIIT Pet (Parkhi et al. 2012), trainval.txt and test.txt"
_LINE = re.compile(r"(([A-Za-z]+(?:_[A-Za-z]+)*)_[0-9]{1,4}) [0-9]+ [12] [0-9]+")
SOURCES = {
    imagenet.NAME: (imagenet.ORIGIN, imagenet.LICENCE),
    VGG: (VGG_ORIGIN, CC_BY_SA_4),
}


@data("pets", page="pets", order=4)
class Pets(Settings):
    """ImageNet against Oxford-IIIT Pet: photos of 24 breeds, of which the model sees a crop.

    VGG's training images count tenfold (`EXPANSION`), as the paper expands them; nothing is stored
    more than once.
    """

    classes: list[str] = key([], CLASSES, "of the 24, at least two; none: all")
    size: int = key(256, IMAGE_SIDE, "pixels of the shorter side; a square is stored")
    crop: int | None = key(None, IMAGE_SIDE, "pixels that the model sees; null: size·224/256")
    skip_unreadable: bool = key(False, help="leave out what cannot be read, with a note")

    def __post_init__(self) -> None:
        """The order of `classes` means nothing; a crop that is left out is 224 of 256 pixels."""
        self.classes = sorted(set(self.classes))
        if self.crop is None:
            self.crop = max(1, round(self.size * 224 / 256))

    def check(self) -> None:
        if self.crop is not None and self.crop > self.size:
            raise UserError(f"data.crop={self.crop}: must be from 1 to data.size={self.size}")
        self.breeds()

    def breeds(self) -> tuple[Breed, ...]:
        """The breeds of `classes`, or all, in the table's order, which is that of the labels.

        Raises UserError for a name that is none, and for fewer than two.
        """
        chosen = tuple(b for b in BREEDS if b.name in self.classes or not self.classes)
        known = [breed.name for breed in BREEDS]
        unknown = [name for name in self.classes if name not in known]
        if unknown or len(chosen) < 2:
            fault = f"no class {unknown[0]!r}" if unknown else "one class; two are needed"
            raise UserError(
                f"data.classes=[{','.join(self.classes)}]: {fault}; allowed are {', '.join(known)}"
            )
        return chosen

    def names(self) -> tuple[str, ...]:
        return tuple(SOURCES)

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        there = {
            "ImageNet": any((folder / name / "train").is_dir() for name in imagenet.FOLDERS),
            "VGG": (folder / VGG_FOLDER / "images").is_dir(),
        }
        return f"{imagenet.LICENCE}; VGG {CC_BY_SA_4}", BYTES, there

    def load(self, facts: DataFacts) -> DomainSet:
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at. Raises UserError."""
        breeds, data_dir = self.breeds(), facts.folder("data")
        names = tuple(breed.name for breed in breeds)
        by_domain, notes = _listed(domains, breeds, facts)
        prepared: dict[str, Prepared] = {}
        for name, files in by_domain.items():
            # A store for each domain, so that sets of one of them share it with sets of both.
            listing, of = Listing(data_dir, data_dir, files), {"classes": list(names)}
            cache = facts.folder("cache")
            prepared |= prepare(listing, cache, self.size, facts.say, f"pets-{name}", of)
        notes += notes_on_files(data_dir, prepared, self.skip_unreadable)
        found = []
        for name, arrays in prepared.items():
            _check_classes(name, [arrays.files[row] for row in arrays.readable], breeds)
            source, licence = SOURCES[name]
            seen = Views(crop=self.crop)
            views = {"train": Views(EXPANSION, self.crop) if name == VGG else seen, "test": seen}
            about = {"name": name, "source": source, "licence": licence}
            found.append(arrays.domain(arrays.given_splits(), views, **about))
        return DomainSet.of("pets", found, names, notes, facts.say)


def _listed(
    domains: Sequence[str], breeds: Sequence[Breed], facts: DataFacts
) -> tuple[dict[str, list[Listed]], list[str]]:
    """The files of the wanted domains, and notes on what is not as published."""
    data_dir = facts.folder("data")
    found: dict[str, list[Listed]] = {}
    notes: list[str] = []
    if imagenet.NAME in domains:  # before hours of fetching
        found[imagenet.NAME], notes = imagenet.list_imagenet(data_dir, breeds)
        _check_classes(imagenet.NAME, found[imagenet.NAME], breeds)
    if VGG in domains:
        have_vgg(data_dir, facts.say)
        found[VGG], more = list_vgg(data_dir, [breed.name for breed in breeds])
        _check_classes(VGG, found[VGG], breeds)
        notes = [*notes, *more]
    return found, notes


def _check_classes(domain: str, files: Iterable[Listed], breeds: Sequence[Breed]) -> None:
    """Both splits have an image of every class. Raises UserError."""
    there = {(file.split, file.label) for file in files}
    lacking = [
        f"{breed.name} ({breed.synset}) in {split}"
        for split in ("train", "test")
        for breed in breeds
        if (split, breed.name) not in there
    ]
    if lacking:
        raise UserError(
            f"domain {domain} has no image that can be read of {len(lacking)} classes and splits: "
            f"{listed(lacking)}; add them, or choose other classes with data.classes=[…]"
        )


# --- Oxford-IIIT Pet -----------------------------------------------------------------------------


def have_vgg(data_dir: Path, say: Say) -> None:
    """See that images and lists are there: fetched and unpacked where they are not.

    Raises UserError if they cannot be had, naming what belongs where.
    """
    folder = data_dir / VGG_FOLDER
    for part in ("annotations", "images"):
        name = f"{part}.tar.gz"
        archive = folder / name
        if (folder / part).is_dir():
            continue
        if not archive.is_file():
            fetch_missing("data=pets lacks Oxford-IIIT Pet's", [name], folder, say)
        lock = folder.resolve() / f"{name}.lock"
        with filled(folder), held(lock, say, waiting_for=f"unpacking {name}"):
            if not (folder / part).is_dir():
                _unpack(archive, part, say)


def _unpack(archive: Path, part: str, say: Say) -> None:
    """Put the archive's folder beside it, when it is whole. Of the published bytes, nothing else
    need be feared. Raises UserError for others, OSError."""
    from torchvision.datasets.utils import check_integrity  # noqa: PLC0415 - takes seconds

    say(f"checking and unpacking {shown(archive)}")
    md5 = origin(archive.name).md5
    if not check_integrity(archive, md5):
        raise UserError(
            f"{shown(archive)} is not the published one (md5 {md5}); delete it to have it "
            "fetched, or unpack it yourself"
        )
    unpacked = archive.with_name(f".{archive.name}.unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)  # of an unpacking that was cut off
    shutil.unpack_archive(archive, unpacked)
    (unpacked / part).rename(archive.parent / part)
    shutil.rmtree(unpacked)


def list_vgg(data_dir: Path, breeds: Collection[str]) -> tuple[list[Listed], list[str]]:
    """The listed files of the breeds, with paths below data_dir, and notes on what is not as
    published. Raises UserError: a list cannot be read, or an image is listed twice."""
    files: list[Listed] = []
    notes: list[str] = []
    seen: set[str] = set()
    for split, (name, published) in VGG_LISTS.items():
        path, before = data_dir / VGG_FOLDER / "annotations" / name, len(seen)
        with readable(path):
            lines = path.read_text("ascii", errors="replace").splitlines()
        for number, line in enumerate(map(str.strip, lines), start=1):
            if not line or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line)
            if match is None or match[1] in seen:
                raise UserError(
                    f"{shown(path)}, line {number}: {shown(line[:60])!r} is no line of Oxford-IIIT "
                    "Pet's (NAME_1 class species breed, every name once in both lists)"
                )
            seen.add(match[1])
            if match[2].lower() in breeds:
                photo = f"{VGG_FOLDER}/images/{match[1]}.jpg"
                stamp = stamp_of(data_dir / photo)
                files.append(Listed(VGG, match[2].lower(), split, photo, stamp))
        if len(seen) - before != published:
            notes.append(
                f"VGG: {name} lists {len(seen) - before:,} images, the published one "
                f"{published:,}: it is another split or a part of it"
            )
    return files, notes
