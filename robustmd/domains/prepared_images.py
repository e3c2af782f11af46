"""The images of a listing, decoded once into a store; what cannot be read is kept as a reason."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import stamp_of
from robustmd.domains.decoding import UnreadableError, decoded
from robustmd.domains.listing import Listed, Listing, few, shown
from robustmd.domains.store import Recipe, Store, open_store
from robustmd.errors import UserError

Say = Callable[[str], None]
# Of the preparation: raise it when the same files give other arrays. It is part of the content, so
# that a store of before is replaced and not left beside the new one.
VERSION = 2
PROGRESS_SECONDS = 10.0
DIM = "12 bits"  # noted of a row that is read: see `Decoded`


@dataclass(frozen=True)
class Prepared:
    """The arrays of one domain, aligned with `Listing.by_domain`.

    images: uint8 [n, size, size, 3], black where a file could not be read
    labels: int64 [n], indices into the listing's classes
    unreadable: row → why
    dim: rows of images that have 16 bits and use 12, so that they are nearly black
    checksums: of images and labels
    """

    images: np.ndarray
    labels: np.ndarray
    unreadable: dict[int, str]
    dim: list[int]
    checksums: dict[str, str]


def prepare(
    listing: Listing,
    cache: Path,
    size: int,
    say: Say,
    name: str = "folder",
    settings: Mapping[str, object] | None = None,
) -> dict[str, Prepared]:
    """Every domain's arrays, from the store in `cache`, which is made first if need be.

    name: of the data set; settings: what else tells its stores apart, as plain JSON

    A store is good as long as the listing stays the same: paths, stamps of the files, classes.
    A preparation that was cut off goes on where it was, a few seconds' work lost.
    Raises UserError if the cache cannot be written, or a file changes while it is read.
    """
    recipe = Recipe(
        name=name,
        version=1,
        settings={"source": str(listing.source), "size": size, **(settings or {})},
        build=partial(_build, listing, size, say),
        sources={},
        md5=str,
        content=hashlib.sha256(f"{VERSION}\n{listing.text()}".encode()).hexdigest(),
        resumable=True,
    )
    store = open_store(cache, recipe, lambda md5s: None, say)
    noted = json.loads(store.arrays["noted"].tobytes())
    return {domain: _of_domain(store, index, noted) for index, domain in enumerate(listing.domains)}


def notes_on_files(listing: Listing, prepared: Mapping[str, Prepared], skip: bool) -> list[str]:
    """Notes on files that are left out, or nearly black, if any. Raises UserError for those that
    cannot be read, unless they may be left out."""
    found = [
        f"{shown(files[row].path)} ({why})"
        for name, files in listing.by_domain.items()
        for row, why in prepared[name].unreadable.items()
    ]
    if found and not skip:
        raise UserError(
            f"{len(found):,} of {len(listing.files):,} images in {shown(listing.folder)} cannot be "
            f"read: {few(found)}; mend or remove them, or leave them out with "
            "data.skip_unreadable=true"
        )
    dim = [
        shown(files[row].path)
        for name, files in listing.by_domain.items()
        for row in prepared[name].dim
    ]
    notes = [f"{len(found):,} unreadable and left out: {few(found)}"] if found else []
    if dim:
        notes.append(
            f"{len(dim):,} of 16 bits whose values fit into 12, so nearly black: {few(dim)}; scale "
            "them to 65,535 if they should not be"
        )
    return notes


def _of_domain(store: Store, index: int, noted: list[list[object]]) -> Prepared:
    of_rows = {int(str(row)): str(what) for domain, row, what in noted if domain == index}
    return Prepared(
        store.arrays[f"images_{index}"],
        store.arrays[f"labels_{index}"],
        {row: what for row, what in of_rows.items() if what != DIM},
        [row for row, what in of_rows.items() if what == DIM],
        {part: store.checksums[f"{part}_{index}"] for part in ("images", "labels")},
    )


def _build(listing: Listing, size: int, say: Say, writer: ArrayWriter) -> None:
    all_noted: list[tuple[int, int, str]] = []
    progress = _Progress(len(listing.files), say)
    classes = {name: index for index, name in enumerate(listing.classes)}
    for index, files in enumerate(listing.by_domain.values()):
        labels = np.array([classes[file.label] for file in files], dtype=np.int64)
        noted: list[tuple[int, str]] = []
        blocks = partial(_blocks, listing.folder, files, size, noted, progress)
        shape = (len(files), size, size, 3)
        writer.add_resumable(f"images_{index}", "uint8", shape, blocks, noted)
        writer.add(f"labels_{index}", "int64", labels.shape, [labels])
        all_noted += [(index, row, what) for row, what in noted]
    text = np.frombuffer(json.dumps(all_noted).encode("ascii"), dtype=np.uint8)
    writer.add("noted", "uint8", text.shape, [text])


def _blocks(
    folder: Path,
    files: list[Listed],
    size: int,
    noted: list[tuple[int, str]],
    progress: _Progress,
    start: int,
) -> Iterator[np.ndarray]:
    """The files' images from row `start` on, each uint8 [1, size, size, 3]; black, and noted as
    (row, why), where there is none. A dim one is noted as (row, DIM)."""
    progress.go_on_after(start)
    paths = [folder / file.path for file in files[start:]]
    for row, result in enumerate(decoded(paths, size), start):
        file = files[row]
        if isinstance(result, UnreadableError):
            noted.append((row, str(result)))
            yield np.zeros((1, size, size, 3), dtype=np.uint8)
        else:
            if result.dim:
                noted.append((row, DIM))
            yield result.pixels[None]
        if stamp_of(folder / file.path) != file.stamp:
            raise UserError(
                f"{shown(folder / file.path)} changed while it was read; run again when it is "
                "complete"
            )
        progress.one_more()


class _Progress:
    """Says from time to time how many of `total` images have been read."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total, self.say = total, say
        self.done = 0
        self._said = time.monotonic()

    def go_on_after(self, done: int) -> None:
        """`done` images need not be read again: they were before the preparation was cut off."""
        self.done += done
        if done:
            self.say(f"going on after {self.done:,} of {self.total:,} images, read before a cut")

    def one_more(self) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._said >= PROGRESS_SECONDS and self.done < self.total:
            self._said = now
            self.say(f"{self.done:,} of {self.total:,} images read")
