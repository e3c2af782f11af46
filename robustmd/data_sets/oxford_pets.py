"""VGG's pets: Oxford-IIIT Pet as torchvision lays it out, found under paths.data or fetched there.

images/NAME_1.jpg …, and annotations/trainval.txt (which trains) and test.txt, whose lines are
"NAME_1 class species breed", the breed's number within its species. Images that are in neither list
are left alone, as are the MATLAB files among the images.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from robustmd.domains.checksums import file_md5, stamp_of
from robustmd.domains.fetch import fetch_missing, origin
from robustmd.domains.listing import Listed, shown
from robustmd.errors import UserError
from robustmd.runs.lock import held

NAME = "vgg"
FOLDER = "oxford-iiit-pet"  # below paths.data
LISTS = {"train": ("trainval.txt", 3_680), "test": ("test.txt", 3_669)}  # images of all 37 breeds
ORIGIN = "Oxford-IIIT Pet (Parkhi et al. 2012), trainval.txt and test.txt"
_LINE = re.compile(r"(([A-Za-z]+(?:_[A-Za-z]+)*)_[0-9]{1,4}) [0-9]+ [12] [0-9]+")


def have_vgg(data_dir: Path, say: Callable[[str], None]) -> None:
    """See that images and lists are there: fetched and unpacked where they are not.

    Raises UserError if they cannot be had, naming what belongs where.
    """
    folder = data_dir / FOLDER
    for part in ("annotations", "images"):
        name = f"{part}.tar.gz"
        archive = folder / name
        if (folder / part).is_dir():
            continue
        if not archive.is_file():
            fetch_missing("data=pets lacks Oxford-IIIT Pet's", [name], folder, say)
        try:
            with held(folder.resolve() / f"{name}.lock", say, waiting_for=f"unpacking {name}"):
                if not (folder / part).is_dir():
                    _unpack(archive, part, say)
        except OSError as error:
            raise UserError(
                f"{shown(folder)} cannot be written ({error.strerror or error}); make it writable "
                "and give it space, or choose another data folder with paths.data=DIR"
            ) from error


def _unpack(archive: Path, part: str, say: Callable[[str], None]) -> None:
    """Put the archive's folder beside it, when it is whole. Of the published bytes, nothing else
    need be feared. Raises UserError for others, OSError."""
    say(f"checking and unpacking {shown(archive)}")
    md5 = origin(archive.name).md5
    if file_md5(archive) != md5:
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
    for split, (name, published) in LISTS.items():
        path, before = data_dir / FOLDER / "annotations" / name, len(seen)
        try:
            lines = path.read_text("ascii", errors="replace").splitlines()
        except OSError as error:
            raise UserError(f"cannot read {shown(path)} ({error.strerror})") from error
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
                photo = f"{FOLDER}/images/{match[1]}.jpg"
                stamp = stamp_of(data_dir / photo)
                files.append(Listed(NAME, match[2].lower(), split, photo, stamp))
        if len(seen) - before != published:
            notes.append(
                f"VGG: {name} lists {len(seen) - before:,} images, the published one "
                f"{published:,}: it is another split or a part of it"
            )
    return files, notes
