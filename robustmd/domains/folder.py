"""data=folder: a user's own domains, from folders of images or from a manifest of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from robustmd.domains.checksums import array_sha256, fingerprint
from robustmd.domains.class_folders import LAYOUT, list_root
from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.domains.examples import SPLITS
from robustmd.domains.listing import Listed, Listing, few, shown
from robustmd.domains.manifest_csv import list_manifest
from robustmd.domains.prepared_images import Prepared, notes_on_files, prepare
from robustmd.domains.splits import seeded_split
from robustmd.errors import UserError

Say = Callable[[str], None]
MOST_NOTES = 10


def load(
    cache_dir: Path,
    *,
    root: Path | None = None,
    manifest: Path | None = None,
    outside: bool = False,
    size: int = 32,
    test_share: float = 0.2,
    split_seed: int = 0,
    skip_unreadable: bool = False,
    say: Say = lambda line: None,
) -> DomainSet:
    """K ≥ 2 domains in the order of their names, as size × size RGB (see decoding.py).

    cache_dir: keeps the prepared arrays, so that every image is decoded once
    root, manifest: one of the two; see class_folders.py and manifest_csv.py
    outside: a manifest's paths may lead out of its folder
    size: pixels, ≥ 1
    test_share, split_seed: share in (0, 1) and seed of the test split of domains without one; not
        the run's seed, so that runs are compared on the same examples
    skip_unreadable: leave out, with a note, what cannot be read, instead of refusing it all
    say: is called with a line for each thing that takes time or should be known

    A domain may lack classes; that is noted. Raises UserError: one line for whatever is missing,
    unreadable or laid out in another way, with the first ten and a count.
    """
    if root is not None and manifest is not None:
        raise UserError(
            f"data.root={shown(root)} and data.manifest={shown(manifest)}: give one of the two"
        )
    if root is not None:
        listing = list_root(root.absolute())
    elif manifest is not None:
        listing = list_manifest(manifest.absolute(), outside=outside)
    else:
        raise UserError(
            f"data=folder: say where the images are, with data.root=DIR (holding {LAYOUT}) or "
            "data.manifest=FILE.csv (columns path,domain,label,split)"
        )
    _check(listing)
    prepared = prepare(listing, cache_dir, size, say)
    of_files = notes_on_files(listing, prepared, skip_unreadable)
    notes = [*listing.notes, *listing.twins, *of_files]
    domains, checksums = [], {}
    for name, files in listing.by_domain.items():
        arrays = prepared[name]
        rows = _rows(name, files, arrays, test_share, split_seed)
        parts = {split: Examples(arrays.images, arrays.labels, rows[split]) for split in rows}
        three = parts["train"], parts["test"], parts.get("val")
        domains.append(Domain(name, *three, source=str(listing.source), verified="own files"))
        sums = {f"{split}_rows": array_sha256(chosen) for split, chosen in rows.items()}
        checksums[name] = arrays.checksums | sums
        there = np.unique(arrays.labels[np.concatenate([*rows.values()])])
        lacking = np.delete(listing.classes, there).tolist()
        if lacking:
            share = f"{len(lacking)} of {len(listing.classes)} classes"
            notes.append(f"domain {name} lacks {share}: {few(lacking)}")
    if len(notes) > MOST_NOTES:
        more = len(notes) - MOST_NOTES + 1
        notes = [*notes[: MOST_NOTES - 1], f"and {more} more domains lack classes"]
    for note in notes:
        say(note)
    sha256 = fingerprint("folder", listing.classes, checksums)
    return DomainSet("folder", tuple(domains), listing.classes, sha256, tuple(notes))


def _check(listing: Listing) -> None:
    """Two domains or more; each has train and test given for all of its files, or for none."""
    if len(listing.domains) < 2:
        names = ", ".join(listing.domains) or "none"
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


def _rows(
    name: str, files: list[Listed], arrays: Prepared, share: float, seed: int
) -> dict[str, np.ndarray]:
    """Split → its rows (int64 [n]), as given, or drawn. Raises UserError for too few readable
    files."""
    readable = np.delete(np.arange(len(files)), list(arrays.unreadable))
    if files[0].split:
        given = np.array([file.split for file in files])[readable]
        rows = {split: readable[given == split] for split in SPLITS if split in given}
        for split in ("train", "test"):
            if split not in rows:
                raise UserError(f"domain {name}: none of its {split} images can be read")
        return rows
    if len(readable) < 2:
        raise UserError(
            f"domain {name}: {len(readable)} readable image(s); at least two are needed, one to "
            "train on and one to test on"
        )
    train, test = seeded_split(arrays.labels[readable], share, seed, name)
    return {"train": readable[train], "test": readable[test]}
