"""`data=folder`: a user's own domains, as folders of class folders or as a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robustmd.config.paths import whole
from robustmd.config.ranges import IMAGE_SIDE, SEED, SHARE, Allowed, one_of
from robustmd.domains.domain import DomainSet
from robustmd.domains.examples import seeded_split
from robustmd.domains.listing import LAYOUT, Listing, list_root, shown
from robustmd.domains.manifest_csv import list_manifest
from robustmd.domains.prepared_images import Prepared, notes_on_files, prepare
from robustmd.errors import Say, UserError, listed
from robustmd.registry import DataFacts, Settings, data, key

COLUMNS = Allowed(
    "a list of the manifest's columns, as [label,place]",
    lambda value: all(isinstance(name, str) for name in value),
)
MOST_NOTES = 10


def load(cache_dir: Path, say: Say = lambda line: None, **settings: Any) -> DomainSet:
    """The same from Python: the keys of `Folder`, as root="DIR".

    cache_dir: keeps the prepared arrays; say: is called with a line for each thing that takes time
    or should be known. Raises UserError.
    """
    return Folder(**settings).load(DataFacts(lambda _: cache_dir, say))


@data("folder", page="own_data", order=6)
class Folder(Settings):
    """Your own domains: folders of class folders, or a manifest.

    Exactly one of `root` and `manifest`, made absolute; see listing.py, manifest_csv.py.
    """

    root: str | None = key(None, help="the folder that holds DOMAIN/CLASS/IMAGE", place=True)
    manifest: str | None = key(None, help="a CSV of paths, labels and domains", place=True)
    group_by: list[str] = key([], COLUMNS, "whose values make a domain; none: the column domain")
    outside: bool = key(False, help="a manifest's paths may lead out of its folder")
    size: int = key(32, IMAGE_SIDE, "pixels of an image's sides")
    test_share: float = key(0.2, SHARE, "of a domain without splits of its own")
    split_seed: int = key(0, SEED, "draws that split, whatever the run's seed")
    skip_unreadable: bool = key(False, help="leave out what cannot be read, with a note")
    labels: str = key(
        "shared",
        one_of("shared", "per_domain"),
        "whether a class of that name is the same in every domain",
    )

    def __post_init__(self) -> None:
        """A relative path means another folder elsewhere."""
        self.root = whole("data.root", str(self.root)) if self.root else None
        self.manifest = whole("data.manifest", str(self.manifest)) if self.manifest else None

    def load(self, facts: DataFacts) -> DomainSet:
        """K ≥ 2 domains in the order of their names, as size × size RGB (see decoding.py).

        A domain may lack classes; that is noted. Raises UserError: one line for whatever is
        missing, unreadable or laid out in another way, with the first ten and a count.
        """
        listing = self._listing()
        _check(listing)
        prepared = prepare(listing, facts.folder("cache"), self.size, facts.say)
        of_files = notes_on_files(listing.folder, prepared, self.skip_unreadable)
        notes = [*listing.notes, *listing.twins(), *of_files]
        domains = []
        about = {"source": str(listing.source), "verified": "own files"}
        for name, arrays in prepared.items():
            rows = self._rows(name, arrays)
            domains.append(arrays.domain(rows, {}, name=name, **about))
            there = np.unique(arrays.labels[np.concatenate([*rows.values()])])
            lacking = np.delete(listing.classes, there).tolist()
            if lacking and "label" not in self.group_by:
                share = f"{len(lacking)} of {len(listing.classes)} classes"
                notes.append(f"domain {name} lacks {share}: {listed(lacking)}")
        if len(notes) > MOST_NOTES:
            more = len(notes) - MOST_NOTES + 1
            notes = [*notes[: MOST_NOTES - 1], f"and {more} more domains lack classes"]
        return DomainSet.of("folder", domains, listing.classes, notes, facts.say)

    def _listing(self) -> Listing:
        if self.root and self.manifest:
            raise UserError(
                f"data.root={shown(self.root)} and data.manifest={shown(self.manifest)}: give one "
                "of the two"
            )
        if self.manifest:
            return list_manifest(Path(self.manifest), self.group_by, outside=self.outside)
        if self.root and self.group_by:
            raise UserError(
                f"data.group_by=[{','.join(self.group_by)}]: names columns of data.manifest=FILE; "
                "with data.root=DIR the folders are the domains"
            )
        if self.root:
            return list_root(Path(self.root))
        raise UserError(
            f"data=folder: say where the images are, with data.root=DIR (holding {LAYOUT}) or "
            "data.manifest=FILE.csv (columns path,domain,label,split)"
        )

    def _rows(self, name: str, arrays: Prepared) -> dict[str, np.ndarray]:
        """Split → its rows (int64 [n]), as given, or drawn. Raises UserError for too few readable
        files."""
        if arrays.files[0].split:
            rows = arrays.given_splits()
            for split in ("train", "test"):
                if split not in rows:
                    raise UserError(f"domain {name}: none of its {split} images can be read")
            return rows
        readable = arrays.readable
        if len(readable) < 2:
            raise UserError(
                f"domain {name}: {len(readable)} readable image(s); at least two are needed, one "
                "to train on and one to test on"
            )
        labels = arrays.labels[readable]
        train, test = seeded_split(labels, self.test_share, self.split_seed, name)
        return {"train": readable[train], "test": readable[test]}


def _check(listing: Listing) -> None:
    """Two domains or more; each has train and test given for all of its files, or for none."""
    if len(listing.by_domain) < 2:
        names = ", ".join(listing.by_domain) or "none"
        raise UserError(
            f"{shown(listing.source)}: one domain or none ({names}); at least two are needed"
        )
    for name, files in listing.by_domain.items():
        given = [file.split for file in files]
        if any(given) and not all(given):
            raise UserError(
                f"domain {name}: {given.count(''):,} of its {len(given):,} files have no split; "
                "give one for all of them, or for none to have it drawn"
            )
        for split in ("train", "test") if any(given) else ():
            if split not in given:
                raise UserError(f"domain {name}: no file is in its {split} split; one is needed")
