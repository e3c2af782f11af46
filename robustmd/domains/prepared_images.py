"""The images of a listing, decoded once into a store; what cannot be read is kept as a reason."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import stamp_of
from robustmd.domains.decoding import UnreadableError, decoded
from robustmd.domains.listing import Listed, Listing, shown
from robustmd.domains.store import Recipe, open_store
from robustmd.errors import Say, UserError, listed

# Of the preparation: raise it when the same files give other arrays. It is part of the content, so
# that a store of before is replaced and not left beside the new one.
VERSION = 2
PROGRESS_SECONDS = 10.0
DIM = "12 bits"  # noted of a row that is read: see `Decoded`


@dataclass(frozen=True)
class Prepared:
    """The arrays of one domain, aligned with `Listing.by_domain`: images uint8 [n, size, size, 3],
    black where a file could not be read; labels int64 [n]; unreadable: row → why; dim: rows of
    images that have 16 bits and use 12, so that they are nearly black."""

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
    """Every domain's arrays, from the store in `cache`, which is made first if need be; `settings`:
    what else than the listing and the size tells the data set's stores apart.

    A store is good as long as the listing stays the same: paths, stamps of the files, classes.
    A preparation that was cut off goes on where it was, a few seconds' work lost.
    Raises UserError if the cache cannot be written, or a file changes while it is read.
    """
    recipe = Recipe(
        name=name,
        version=1,
        settings={"source": str(listing.source), "size": size, **(settings or {})},
        build=partial(_build, listing, size, say),
        content=hashlib.sha256(f"{VERSION}\n{listing.text()}".encode()).hexdigest(),
    )
    store = open_store(cache, recipe, say)
    found = {}
    noted = json.loads(store.arrays["noted"].tobytes())
    for index, domain in enumerate(listing.domains):
        of_rows = {row: what for of, row, what in noted if of == index}
        images, labels = f"images_{index}", f"labels_{index}"
        found[domain] = Prepared(
            store.arrays[images],
            store.arrays[labels],
            {row: what for row, what in of_rows.items() if what != DIM},
            [row for row, what in of_rows.items() if what == DIM],
            {"images": store.checksums[images], "labels": store.checksums[labels]},
        )
    return found


def notes_on_files(listing: Listing, prepared: Mapping[str, Prepared], skip: bool) -> list[str]:
    """Notes on files that are left out, or nearly black, if any. Raises UserError for those that
    cannot be read, unless they may be left out."""
    found, dim = [], []
    for name, files in listing.by_domain.items():
        unreadable = prepared[name].unreadable.items()
        found += [f"{shown(files[row].path)} ({why})" for row, why in unreadable]
        dim += [shown(files[row].path) for row in prepared[name].dim]
    if found and not skip:
        raise UserError(
            f"{len(found):,} of {len(listing.files):,} images in {shown(listing.folder)} cannot be "
            f"read: {listed(found)}; mend or remove them, or leave them out with "
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
    say: Say,
    start: int,
) -> Iterator[np.ndarray]:
    """The files' images from row `start` on, each uint8 [1, size, size, 3]; black, and noted as
    (row, why), where there is none. A dim one is noted as (row, DIM)."""
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
