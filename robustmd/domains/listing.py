"""Which image files make up a user's domains, before any of them is opened.

Below data.root they lie in DOMAIN/CLASS/image, or DOMAIN/{train,val,test}/CLASS/image.
A domain has the level of splits if its folders are called train, test and perhaps val, and
nothing else; a class may still be called train beside other classes. Hidden files and folders are
passed over in silence, other files that are no images by name, and folders within a class, with a
note. Links are followed, except those that lead back to a folder that they lie in; one that leads
nowhere is refused where a domain or class may be meant, and is an unreadable image elsewhere.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from robustmd.domains.checksums import Stamp, stamp_of
from robustmd.domains.decoding import SUFFIXES
from robustmd.domains.examples import SPLITS
from robustmd.errors import UserError, listed, printable, readable

LONGEST_NAME = 200
UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # Unicode's: controls, stray bytes, line breaks
# What splits' folders are called here and elsewhere, in lower case.
SPLIT_WORDS = frozenset({*SPLITS, "training", "valid", "validation", "dev", "eval", "testing"})
LITTER = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
LAYOUT = "DOMAIN/CLASS/image or DOMAIN/{train,test}/CLASS/image"
shown = printable  # a path or name, for a message


class Listed(NamedTuple):
    """One image file.

    domain, label: their names; split: train, val or test, "" where it is to be drawn
    path: relative to the listing's folder
    stamp: of the file; NO_FILE where there is none, which is found when it is to be decoded
    """

    domain: str
    label: str
    split: str
    path: str
    stamp: Stamp


class Listing:
    """The files of all domains, sorted by domain, then path, whatever the file system's order.

    source: data.root or data.manifest; folder: what the paths are relative to; classes: the union
    of the domains', sorted as text: "10" comes before "2"; notes: what was passed over, in lines
    """

    def __init__(
        self, source: Path, folder: Path, files: Iterable[Listed], notes: Iterable[str] = ()
    ) -> None:
        self.source, self.folder, self.notes = source, folder, tuple(notes)
        self.files = sorted(files, key=lambda file: (file.domain, clean(file.path)))
        of_domains = groupby(self.files, key=lambda file: file.domain)
        self.by_domain = {domain: list(own) for domain, own in of_domains}
        self.classes = tuple(sorted({file.label for file in self.files}))

    def twins(self) -> list[str]:
        """A note for each kind of names that are hard to tell apart."""
        notes = []
        for kind, names in (("domains", self.by_domain), ("classes", self.classes)):
            alike: dict[str, list[str]] = {}
            for name in names:
                seen = "".join(c for c in name if unicodedata.category(c) != "Cf")
                alike.setdefault(seen.casefold(), []).append(ascii(name))
            same = [" and ".join(group) for group in alike.values() if len(group) > 1]
            if same:
                differ = "differ in case or unseen characters only"
                notes.append(f"{kind} that {differ}: {listed(same)}")
        return notes

    def text(self) -> str:
        """A line for each file: two listings are of the same files iff their texts agree."""
        rows = (json.dumps([*file[:4], *file.stamp]) for file in self.files)
        return "\n".join([json.dumps(str(self.folder)), *rows, ""])


def clean(name: str) -> str:
    """One spelling for names that look the same: file systems differ in how they write ö."""
    return unicodedata.normalize("NFC", name)


def checked_name(kind: str, name: str, where: str) -> str:
    """The name of a domain or class, spelt uniformly. Raises UserError for one that is no name.

    Names become keys of files and columns of tables: no slash, no control character.
    """
    name = clean(name)
    unfit = any(c in "/\\" or unicodedata.category(c) in UNPRINTABLE for c in name)
    if unfit or not 0 < len(name) <= LONGEST_NAME:
        raise UserError(
            f"{where}: {kind} {shown(name)} must be 1 to {LONGEST_NAME} printable characters "
            "without / and \\"
        )
    return name


def list_root(root: Path) -> Listing:
    """The image files below `root`.

    Raises UserError: no such folder, another layout, or a class or split without an image.
    """
    walk = _Walk(root)
    if not root.is_dir():
        raise UserError(f"{walk.where}: no such folder; it must hold {LAYOUT}")
    files = list(walk.domains())
    if walk.dangling:
        raise UserError(
            f"{walk.where}: {len(walk.dangling):,} link(s) lead nowhere, where a domain or class "
            f"may be meant: {listed(walk.dangling)}; mend or remove them"
        )
    if walk.empty:
        raise UserError(
            f"{walk.where}: {len(walk.empty):,} folder(s) without an image: {listed(walk.empty)}; "
            f"fill or remove them (the layout is {LAYOUT})"
        )
    passed_over = f"{len(walk.passed_over):,} passed over (no image by its name, or out of place): "
    notes = [passed_over + listed(walk.passed_over)] if walk.passed_over else []
    return Listing(root, root, files, notes)


class _Walk:
    """One walk through data.root, with the names below it of what it passes over."""

    def __init__(self, root: Path) -> None:
        self.root, self.where = root, f"data.root={shown(root)}"
        self.passed_over: list[str] = []
        self.empty: list[str] = []
        self.dangling: list[str] = []

    def domains(self) -> Iterator[Listed]:
        domains = self.folders(self.root)
        splits = [path.name for path in domains if path.name.lower() in SPLIT_WORDS]
        trains = any(name.lower() in ("train", "training") for name in splits)
        if splits and (len(splits) == len(domains) or (trains and len(splits) > 1)):
            holds = ", ".join(splits)
            raise UserError(f"{self.where}: holds {holds}; domains come first: {LAYOUT}")
        for folder in domains:
            domain = checked_name("domain", folder.name, self.where)
            inner = self.folders(folder)
            splits = [path.name for path in inner]
            if "train" not in splits or not set(splits) <= set(SPLITS):
                yield from self.classes(folder, inner, domain, "")
                continue
            if "test" not in splits:
                raise UserError(
                    f"{self.where}: domain {shown(domain)} has {self.name(folder)}/train but no "
                    "test beside it; add one, or put the classes into the domain's folder"
                )
            for split in inner:
                yield from self.classes(split, self.folders(split), domain, split.name)

    def classes(
        self, above: Path, folders: list[Path], domain: str, split: str
    ) -> Iterator[Listed]:
        if not folders:
            self.empty.append(self.name(above))
        for folder in folders:
            label = checked_name("class", folder.name, self.name(above))
            is_empty = True
            for path in self.entries(folder):
                if path.suffix.lower() in SUFFIXES and not _is_dir(path):
                    is_empty, relative = False, path.relative_to(self.root).as_posix()
                    yield Listed(domain, label, split, relative, stamp_of(path))
                else:
                    self.passed_over.append(self.name(path))
            if is_empty:
                self.empty.append(self.name(folder))

    def folders(self, folder: Path) -> list[Path]:
        """The folders in a folder, but for links that lead back."""
        kept: dict[str, Path] = {}
        for path in self.entries(folder):
            if path.is_symlink() and not os.path.exists(path):  # noqa: PTH110 - false for a loop
                self.dangling.append(self.name(path))
            elif not _is_dir(path) or (path.is_symlink() and _leads_back(path)):
                self.passed_over.append(self.name(path))
            elif kept.setdefault(clean(path.name), path) is not path:
                raise UserError(
                    f"{shown(folder)}: {kept[clean(path.name)].name!a} and "
                    f"{path.name!a} are one name in two spellings; rename or join them"
                )
        return list(kept.values())

    def entries(self, folder: Path) -> list[Path]:
        """All but what is hidden, in order."""
        with readable(folder):
            paths = sorted(folder.iterdir())
        return [p for p in paths if not p.name.startswith(".") and p.name.lower() not in LITTER]

    def name(self, path: Path) -> str:
        """A path as messages show it: below data.root."""
        return shown(path.relative_to(self.root).as_posix())


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # no permission, or a link to itself: not to be entered in any case
        return False


def _leads_back(link: Path) -> bool:
    """Whether a link to a folder leads to one that it lies in."""
    target, place = link.resolve(), link.parent.resolve()
    return target == place or target in place.parents
