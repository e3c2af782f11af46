"""The images of a listing, decoded once into a store; what cannot be read is kept as a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import file_md5
from robustmd.domains.decoded import Progress, decoded
from robustmd.domains.decoding import UnreadableError
from robustmd.domains.listing import Listed, Listing, few, shown
from robustmd.domains.shared import make_folder
from robustmd.domains.stamp import stamp_of
from robustmd.domains.store import Recipe, Store, open_store
from robustmd.errors import UserError

Say = Callable[[str], None]
VERSION = 1  # of the preparation: raise it when the same files give other arrays


@dataclass(frozen=True)
class Prepared:
    """The arrays of one domain, aligned with `Listing.by_domain`.

    images: uint8 [n, size, size, 3], black where a file could not be read
    labels: int64 [n], indices into the listing's classes
    unreadable: row → why
    checksums: of images and labels
    """

    images: np.ndarray
    labels: np.ndarray
    unreadable: dict[int, str]
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
    recipe = _recipe(listing, cache, size, say, name, settings or {})
    store = open_store(cache, recipe, lambda md5s: None, say)
    reasons = json.loads(store.arrays["unreadable"].tobytes())
    return {
        domain: _of_domain(store, index, reasons) for index, domain in enumerate(listing.domains)
    }


def unreadable_notes(listing: Listing, prepared: Mapping[str, Prepared], skip: bool) -> list[str]:
    """A note on the files that are left out, if any. Raises UserError unless they may be."""
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
    return [f"{len(found):,} unreadable and left out: {few(found)}"] if found else []


def _of_domain(store: Store, index: int, reasons: list[list[object]]) -> Prepared:
    return Prepared(
        store.arrays[f"images_{index}"],
        store.arrays[f"labels_{index}"],
        {int(str(row)): str(why) for domain, row, why in reasons if domain == index},
        {part: store.checksums[f"{part}_{index}"] for part in ("images", "labels")},
    )


def _recipe(
    listing: Listing,
    cache: Path,
    size: int,
    say: Say,
    name: str,
    settings: Mapping[str, object],
) -> Recipe:
    """The listing, written beside the store, stands for the files: a stat of each, no checksum."""
    recipe = Recipe(
        name=name,
        version=VERSION,
        settings={"source": str(listing.source), "size": size, **settings},
        build=partial(_build, listing, size, say),
        sources={},
        md5=file_md5,
        resumable=True,
    )
    path = cache / f"{recipe.key}.listing"
    _keep(listing.text(), path)
    return replace(recipe, sources={"listing": path})


def _keep(text: str, path: Path) -> None:
    """Have the listing at `path`, untouched if it is the same. Raises UserError."""
    try:
        if path.exists() and path.read_text("ascii") == text:
            return
        make_folder(path.parent)
        partial_path = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial_path.write_text(text, "ascii")
        partial_path.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}); make it writable, or choose another folder "
            "with paths.cache=DIR"
        ) from error


def _build(listing: Listing, size: int, say: Say, writer: ArrayWriter) -> None:
    reasons: list[tuple[int, int, str]] = []
    progress = Progress(len(listing.files), say)
    classes = {name: index for index, name in enumerate(listing.classes)}
    for index, files in enumerate(listing.by_domain.values()):
        labels = np.array([classes[file.label] for file in files], dtype=np.int64)
        noted: list[tuple[int, str]] = []
        blocks = partial(_blocks, listing.folder, files, size, noted, progress)
        shape = (len(files), size, size, 3)
        writer.add_resumable(f"images_{index}", "uint8", shape, blocks, noted)
        writer.add(f"labels_{index}", "int64", labels.shape, [labels])
        reasons += [(index, row, why) for row, why in noted]
    text = np.frombuffer(json.dumps(reasons).encode("ascii"), dtype=np.uint8)
    writer.add("unreadable", "uint8", text.shape, [text])


def _blocks(
    folder: Path,
    files: list[Listed],
    size: int,
    noted: list[tuple[int, str]],
    progress: Progress,
    start: int,
) -> Iterator[np.ndarray]:
    """The files' images from row `start` on, each uint8 [1, size, size, 3]; black, and noted as
    (row, why), where there is none."""
    progress.go_on_after(start)
    paths = [folder / file.path for file in files[start:]]
    for row, result in enumerate(decoded(paths, size), start):
        file = files[row]
        if isinstance(result, UnreadableError):
            noted.append((row, str(result)))
            yield np.zeros((1, size, size, 3), dtype=np.uint8)
        else:
            yield result[None]
        if stamp_of(folder / file.path) != file.stamp:
            raise UserError(
                f"{shown(folder / file.path)} changed while it was read; run again when it is "
                "complete"
            )
        progress.one_more()
