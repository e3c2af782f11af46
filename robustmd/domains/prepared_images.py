"""The images of a listing, decoded once into a store; what cannot be read is kept as a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import file_md5
from robustmd.domains.decoded import Progress, decoded
from robustmd.domains.decoding import UnreadableError
from robustmd.domains.listing import Listed, Listing, shown, state_of
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


def prepare(listing: Listing, cache: Path, size: int, say: Say) -> dict[str, Prepared]:
    """Every domain's arrays, from the store in `cache`, which is made first if need be.

    A store is good as long as the listing stays the same: paths, sizes, times of change, classes.
    Raises UserError if the cache cannot be written, or a file changes while it is read.
    """
    store = open_store(cache, _recipe(listing, cache, size, say), lambda md5s: None, say)
    reasons = json.loads(store.arrays["unreadable"].tobytes())
    return {
        domain: _of_domain(store, index, reasons) for index, domain in enumerate(listing.domains)
    }


def _of_domain(store: Store, index: int, reasons: list[list[object]]) -> Prepared:
    return Prepared(
        store.arrays[f"images_{index}"],
        store.arrays[f"labels_{index}"],
        {int(str(row)): str(why) for domain, row, why in reasons if domain == index},
        {part: store.checksums[f"{part}_{index}"] for part in ("images", "labels")},
    )


def _recipe(listing: Listing, cache: Path, size: int, say: Say) -> Recipe:
    """The listing, written beside the store, stands for the files: a stat of each, no checksum."""
    recipe = Recipe(
        name="folder",
        version=VERSION,
        settings={"source": str(listing.source), "size": size},
        build=partial(_build, listing, size, say),
        sources={},
        md5=file_md5,
    )
    path = cache / f"{recipe.key}.listing"
    _keep(listing.text(), path)
    return replace(recipe, sources={"listing": path})


def _keep(text: str, path: Path) -> None:
    """Have the listing at `path`, untouched if it is the same. Raises UserError."""
    try:
        if path.exists() and path.read_text("ascii") == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
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

        def note(row: int, why: str, index: int = index) -> None:
            reasons.append((index, row, why))

        blocks = _blocks(listing.folder, files, size, note, progress)
        writer.add(f"images_{index}", "uint8", (len(files), size, size, 3), blocks)
        writer.add(f"labels_{index}", "int64", labels.shape, [labels])
    text = np.frombuffer(json.dumps(reasons).encode("ascii"), dtype=np.uint8)
    writer.add("unreadable", "uint8", text.shape, [text])


def _blocks(
    folder: Path,
    files: list[Listed],
    size: int,
    note: Callable[[int, str], None],
    progress: Progress,
) -> Iterator[np.ndarray]:
    """Each file's image as uint8 [1, size, size, 3]; black, and noted, where there is none."""
    paths = [folder / file.path for file in files]
    for row, result in enumerate(decoded(paths, size)):
        if isinstance(result, UnreadableError):
            note(row, str(result))
            yield np.zeros((1, size, size, 3), dtype=np.uint8)
        else:
            yield result[None]
        if (state_of(paths[row]) or (0, 0)) != (files[row].size, files[row].mtime_ns):
            raise UserError(
                f"{shown(paths[row])} changed while it was read; run again when it is complete"
            )
        progress.one_more()
