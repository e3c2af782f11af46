"""Which image files make up a user's domains, before any of them is opened."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from robustmd.domains.checksums import Stamp
from robustmd.errors import UserError, printable

LONGEST_NAME = 200
UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # Unicode's: controls, stray bytes, line breaks
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

    source: what the user named, data.root or data.manifest
    folder: what the paths are relative to
    by_domain: domain → its files; domains: their names, sorted
    classes: the union of the domains' classes, sorted as text: "10" comes before "2"
    notes: what was passed over, in lines
    """

    def __init__(
        self, source: Path, folder: Path, files: Iterable[Listed], notes: Iterable[str] = ()
    ) -> None:
        self.source, self.folder, self.notes = source, folder, tuple(notes)
        self.files = sorted(files, key=lambda file: (file.domain, clean(file.path)))
        self.by_domain: dict[str, list[Listed]] = {}
        for file in self.files:
            self.by_domain.setdefault(file.domain, []).append(file)
        self.domains = tuple(self.by_domain)
        self.classes = tuple(sorted({file.label for file in self.files}))

    @cached_property
    def twins(self) -> list[str]:
        """A note for each kind of names that are hard to tell apart."""
        notes = []
        for kind, names in (("domains", self.domains), ("classes", self.classes)):
            alike: dict[str, list[str]] = {}
            for name in names:
                seen = "".join(c for c in name if unicodedata.category(c) != "Cf")
                alike.setdefault(seen.casefold(), []).append(ascii(name))
            same = [" and ".join(group) for group in alike.values() if len(group) > 1]
            if same:
                notes.append(f"{kind} that differ in case or unseen characters only: {few(same)}")
        return notes

    def text(self) -> str:
        """All of it, one file a line: two listings are of the same files iff their texts agree."""
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


def few(things: Sequence[str], most: int = 10) -> str:
    """The first ten of a list, or so many, and how many more there are."""
    more = f" and {len(things) - most:,} more" if len(things) > most else ""
    return ", ".join(things[:most]) + more
