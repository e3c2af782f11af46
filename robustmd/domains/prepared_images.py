"""The images of a listing, decoded once into a store; what cannot be read is kept as a reason."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import array_sha256, stamp_of
from robustmd.domains.decoding import UnreadableError, decoded
from robustmd.domains.domain import Domain
from robustmd.domains.examples import SPLITS, Examples, Views
from robustmd.domains.listing import Listed, Listing, shown
from robustmd.domains.store import Recipe, open_store
from robustmd.errors import Say, UserError, listed

# Of the preparation: raise it when the same files give other arrays. It is part of the content, so
# that a store of before is replaced and not left beside the new one.
VERSION = 2
PROGRESS_SECONDS = 10.0
DIM = "12 bits"  # noted of an image of 16 that uses 12, and so is nearly black


@dataclass(frozen=True)
class Prepared:
    """The arrays of one domain's files: images uint8 [n, size, size, 3], black where a file could
    not be read; labels int64 [n]; noted: row → why it could not, or `DIM`."""

    files: Sequence[Listed]
    images: np.ndarray
    labels: np.ndarray
    noted: dict[int, str]
    checksums: dict[str, str]

    @property
    def readable(self) -> np.ndarray:
        """The rows of what could be read: int64 [n]."""
        unreadable = [row for row, what in self.noted.items() if what != DIM]
        return np.delete(np.arange(len(self.files)), unreadable)

    def given_splits(self) -> dict[str, np.ndarray]:
        """Split → the rows that are in it and could be read."""
        readable = self.readable
        given = np.array([file.split for file in self.files])[readable]
        return {split: readable[given == split] for split in SPLITS if split in given}

    def domain(
        self, rows: Mapping[str, np.ndarray], views: Mapping[str, Views], **about: Any
    ) -> Domain:
        """The domain whose splits have these rows and views; about: its name, source and so on."""
        paths = [file.path for file in self.files]
        splits: dict[str, Any] = {
            split: Examples(self.images, self.labels, own, views.get(split, Views()), paths)
            for split, own in rows.items()
        }
        domain = Domain(**splits, **about)
        of_rows = {f"{split}_rows": array_sha256(own) for split, own in rows.items()}
        return replace(domain, checksums=self.checksums | of_rows | domain.views_in_words())


def prepare(
    listing: Listing,
    cache: Path,
    size: int,
    say: Say,
    name: str = "folder",
    settings: Mapping[str, object] | None = None,
) -> dict[str, Prepared]:
    """Every domain's arrays, from the store in `cache`, which is made first if need be; `settings`:
    what else than the listing and the size tells the data set's stores apart.

    A store is good as long as the listing stays the same: paths, stamps of the files, classes.
    A preparation that was cut off goes on where it was, a few seconds' work lost.
    Raises UserError if the cache cannot be written, or a file changes while it is read.
    """
    recipe = Recipe(
        name,
        {"source": str(listing.source), "size": size, **(settings or {})},
        partial(_build, listing, size, say),
        content=hashlib.sha256(f"{VERSION}\n{listing.text()}".encode()).hexdigest(),
    )
    store = open_store(cache, recipe, say)
    noted = json.loads(store.arrays["noted"].tobytes())
    found = {}
    for index, (domain, files) in enumerate(listing.by_domain.items()):
        images, labels = f"images_{index}", f"labels_{index}"
        found[domain] = Prepared(
            files,
            store.arrays[images],
            store.arrays[labels],
            {row: what for of, row, what in noted if of == index},
            {"images": store.checksums[images], "labels": store.checksums[labels]},
        )
    return found


def notes_on_files(folder: Path, prepared: Mapping[str, Prepared], skip: bool) -> list[str]:
    """Notes on files in the folder that are left out, or nearly black, if any. Raises UserError for
    those that cannot be read, unless they may be left out."""
    found, dim, total = [], [], 0
    for one in prepared.values():
        total += len(one.files)
        for row, what in one.noted.items():
            path = shown(one.files[row].path)
            if what == DIM:
                dim.append(path)
            else:
                found.append(f"{path} ({what})")
    if found and not skip:
        raise UserError(
            f"{len(found):,} of {total:,} images in {shown(folder)} cannot be read: "
            f"{listed(found)}; mend or remove them, or leave them out with "
            "data.skip_unreadable=true"
        )
    notes = [f"{len(found):,} unreadable and left out: {listed(found)}"] if found else []
    if dim:
        notes.append(
            f"{len(dim):,} of 16 bits whose values fit into 12, so nearly black: {listed(dim)}; "
            "scale them to 65,535 if they should not be"
        )
    return notes


def _build(listing: Listing, size: int, say: Say, writer: ArrayWriter) -> None:
    all_noted: list[tuple[int, int, str]] = []
    classes = {name: index for index, name in enumerate(listing.classes)}
    for index, files in enumerate(listing.by_domain.values()):
        labels = np.array([classes[file.label] for file in files], dtype=np.int64)
        noted: list[tuple[int, str]] = []
        blocks = partial(_blocks, listing.folder, files, size, noted, say)
        shape = (len(files), size, size, 3)
        writer.add_rows(f"images_{index}", shape, blocks, noted)
        writer.add(f"labels_{index}", labels)
        all_noted += [(index, row, what) for row, what in noted]
    writer.add("noted", np.frombuffer(json.dumps(all_noted).encode("ascii"), dtype=np.uint8))


def _blocks(
    folder: Path,
    files: list[Listed],
    size: int,
    noted: list[tuple[int, str]],
    say: Say,
    start: int,
) -> Iterator[np.ndarray]:
    """The files' images from row `start` on, each uint8 [1, size, size, 3], black where there is
    none; `noted` gets (row, why) then, and (row, DIM) of a dim one."""
    paths = [folder / file.path for file in files]
    where = f"of the {len(files):,} images of domain {files[0].domain}"
    if start:
        say(f"going on after {start:,} {where}, read before a cut")
    said = time.monotonic()
    for row, result in enumerate(decoded(paths[start:], size), start):
        if isinstance(result, UnreadableError):
            noted.append((row, str(result)))
            yield np.zeros((1, size, size, 3), dtype=np.uint8)
        else:
            if result.dim:
                noted.append((row, DIM))
            yield result.pixels[None]
        if stamp_of(paths[row]) != files[row].stamp:
            raise UserError(
                f"{shown(paths[row])} changed while it was read; run again when it is complete"
            )
        if time.monotonic() - said >= PROGRESS_SECONDS:
            say(f"{row + 1:,} {where} read")
            said = time.monotonic()
