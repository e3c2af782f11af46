"""VGG's pets: Oxford-IIIT Pet as torchvision lays it out, found under paths.data or fetched there.

images/NAME_1.jpg …, and annotations/trainval.txt (which trains) and test.txt, whose lines are
"NAME_1 class species breed", the breed's number within its species. Images that are in neither list
are left alone, as are the MATLAB files among the images.
"""

from __future__ import annotations

import io
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from robustmd.domains.breeds import Breed
from robustmd.domains.checksums import file_md5, stamp_of
from robustmd.domains.fetch import FetchError, Origin, fetch_file, origin
from robustmd.domains.listing import Listed, few, shown
from robustmd.errors import UserError
from robustmd.runs.lock import held

Say = Callable[[str], None]
NAME = "vgg"
FOLDER = "oxford-iiit-pet"  # below paths.data
LISTS = {"train": "trainval.txt", "test": "test.txt"}
PUBLISHED = {"train": 3_680, "test": 3_669}  # images of all 37 breeds
ORIGIN = "Oxford-IIIT Pet (Parkhi et al. 2012), trainval.txt and test.txt"
_LINE = re.compile(r"([A-Za-z]+(?:_[A-Za-z]+)*)(_[0-9]{1,4}) [0-9]+ [12] [0-9]+")
_WANTED = re.compile(r"images/[A-Za-z_]+_[0-9]+\.jpg|annotations/(list|trainval|test)\.txt")


def have_vgg(data_dir: Path, *, fetch: bool, say: Say) -> None:
    """See that images and lists are there: fetched and unpacked where they are not.

    Raises UserError if they cannot be had, naming what belongs where.
    """
    folder = data_dir / FOLDER
    for name, is_there in (("annotations.tar.gz", _has_lists), ("images.tar.gz", _has_images)):
        if is_there(folder):
            continue
        published = origin(name)
        try:
            archive = _archive(published, folder, fetch, say)
            with held(folder.resolve() / f"{name}.lock", say, waiting_for=f"unpacking {name}"):
                if not is_there(folder):
                    _unpack(archive, published.md5, say)
        except OSError as error:
            raise UserError(
                f"{shown(folder)} cannot be written ({error.strerror or error}); make it writable "
                "and give it space, or choose another data folder with paths.data=DIR"
            ) from error


def list_vgg(data_dir: Path, breeds: Sequence[Breed]) -> tuple[list[Listed], list[str]]:
    """The listed files of the breeds, with paths below data_dir, and notes as imagenet.py's.

    Raises UserError: a list cannot be read, lists an image twice, or has none of a class.
    """
    wanted = {breed.name for breed in breeds}
    splits: dict[str, str] = {}
    files, notes, lacking = [], [], []
    for split, name in LISTS.items():
        path = data_dir / FOLDER / "annotations" / name
        images = _listed_names(path)
        again = splits.keys() & images.keys()
        if again:
            raise UserError(f"{shown(path)}: {min(again)} is in trainval.txt and in test.txt")
        splits |= images
        files += [_listed(data_dir, n, b, split) for n, b in images.items() if b in wanted]
        lacking += [f"{breed} in {name}" for breed in sorted(wanted - {*images.values()})]
        if len(images) != PUBLISHED[split]:
            notes.append(
                f"VGG: {name} lists {len(images):,} images, the published one "
                f"{PUBLISHED[split]:,}: it is another split or a part of it"
            )
    if lacking:
        raise UserError(
            f"domain {NAME} has no image of {len(lacking)} classes and splits: {few(lacking)} (in "
            f"{shown(data_dir / FOLDER)}); choose other classes with data.classes=[…]"
        )
    return files, notes


def _listed_names(path: Path) -> dict[str, str]:
    """Image name → its breed in lower case."""
    try:
        lines = path.read_text("ascii", errors="replace").splitlines()
    except OSError as error:
        raise UserError(f"cannot read {shown(path)} ({error.strerror})") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match[1] + match[2] in found:
            raise UserError(
                f"{shown(path)}, line {number}: {shown(line[:60])!r} is no line of Oxford-IIIT "
                "Pet's (NAME_1 class species breed, every name once)"
            )
        found[match[1] + match[2]] = match[1].lower()
    return found


def _listed(data_dir: Path, name: str, breed: str, split: str) -> Listed:
    path = data_dir / FOLDER / "images" / f"{name}.jpg"
    return Listed(NAME, breed, split, path.relative_to(data_dir).as_posix(), stamp_of(path))


def _has_images(folder: Path) -> bool:
    return (folder / "images").is_dir()


def _has_lists(folder: Path) -> bool:
    return all((folder / "annotations" / name).is_file() for name in LISTS.values())


def _archive(published: Origin, folder: Path, fetch: bool, say: Say) -> Path:
    """The archive's path: as it lies there, or fetched."""
    archive = folder / published.name
    if archive.is_file():
        return archive
    why = "fetching is switched off"
    if fetch:
        try:
            return fetch_file(published, folder, say)
        except FetchError as error:
            why = f"fetching failed: {error}"
    raise UserError(
        f"data=pets lacks Oxford-IIIT Pet's {published.name} (belongs, unpacked or not, into "
        f"{shown(folder)}, comes from {published.sites}); {why}"
    )


def _unpack(archive: Path, md5: str, say: Say) -> None:
    """Take out photos and lists, and nothing else, and put them in place when they are whole."""
    say(f"checking and unpacking {shown(archive)}")
    if file_md5(archive) != md5:
        raise UserError(
            f"{shown(archive)} is not the published one (md5 {md5}); delete it to have it "
            "fetched, or unpack it yourself"
        )
    part = archive.with_name(f".{archive.name}.unpacked")
    shutil.rmtree(part, ignore_errors=True)  # of an unpacking that was cut off
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and _WANTED.fullmatch(member.name):
                target = part / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(tar.extractfile(member) or io.BytesIO(), file)
    for made in sorted(part.iterdir()):
        target = archive.parent / made.name
        if not target.exists():
            made.rename(target)
            continue
        for photo in sorted(made.iterdir()):
            photo.replace(target / photo.name)
    shutil.rmtree(part)
