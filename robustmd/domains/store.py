"""Images that are prepared once and mapped by every later run.

A store is a folder with images.npy, labels.npy and facts.json. Its name ends in two hashes: of what
is prepared, and of the files that it is made from, their sizes and times. If a file changes, the
name changes, so no store is ever out of date. A store is made beside its place and renamed when it
is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock

from robustmd.domains.domain_set import Split, array_sha256
from robustmd.errors import Say, UserError

VERSION = 4  # of what `build` functions write: raise it where one writes other arrays
FACTS = "facts.json"

Notes = list[tuple[int, str]]  # a row of the images or a number of a domain, and a text
# Name of a block of images, its labels int64 [n], and its images in parts, uint8 [m, S, S, 3].
Block = tuple[str, np.ndarray, Iterable[np.ndarray]]


class Store(NamedTuple):
    """Prepared images, uint8 [N, S, S, 3], and labels, int64 [N]: read-only memory maps.

    rows: int64 [n] of each block, in order; sha256: of each block's images and labels.
    """

    images: np.ndarray
    labels: np.ndarray
    rows: dict[str, np.ndarray]
    sha256: dict[str, tuple[str, str]]
    notes: Notes

    def splits(self, domain: str, key: str = "") -> tuple[dict[str, Split], dict[str, str]]:
        """Training and test split, from the blocks DOMAIN_train and DOMAIN_test, and their
        checksums, called KEYtrain_images and so on."""
        splits: dict[str, Split] = {}
        sums: dict[str, str] = {}
        for split in ("train", "test"):
            rows, of = self.rows[f"{domain}_{split}"], self.sha256[f"{domain}_{split}"]
            splits[split] = Split(self.images, self.labels, rows, first=int(rows[0]))
            sums |= {f"{key}{split}_images": of[0], f"{key}{split}_labels": of[1]}
        return splits, sums


def stamp_of(path: Path) -> list[int]:
    """A file's size, its time of change, and the time of change that no program can set back; []
    for what is not there."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a null character
        return []
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def open_store(
    cache: Path,
    name: str,
    side: int,
    settings: object,
    content: object,
    build: Callable[[Notes], Iterable[Block]],
    say: Say,
) -> Store:
    """The store in `cache`, which is prepared first if there is none.

    Args:
        side: S, in pixels.
        settings: what is prepared, JSON.
        content: which files it is made from, as paths and stamps, JSON.
        build: gives the blocks; while their images are read, it may append to the notes.

    Raises:
        UserError: the cache cannot be written; and what `build` raises.
    """
    kind = f"{name}-{_hash([VERSION, side, settings])}"
    folder = cache / f"{kind}-{_hash(content)}"
    if store := _read(folder):
        return store  # whoever may only read needs no lock
    say(f"preparing {name} (once; kept in {folder}), or waiting for the process that does")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f".{kind}.lock", mode=0o666):
            if store := _read(folder):
                return store
            part = cache / f".{kind}.part"
            for old in (part, *cache.glob(f"{kind}-*")):  # of a killed process; of other files
                shutil.rmtree(old, ignore_errors=True)
            part.mkdir()
            try:
                _write(part, side, build)
                part.rename(folder)
            except BaseException:
                shutil.rmtree(part)
                raise
        if store := _read(folder):
            return store
        reason = "it cannot be read again"
    except OSError as error:
        reason = str(error.strerror or error)
    raise UserError(
        f"cannot keep the prepared {name} data in {cache} ({reason}); free space there or make it "
        "writable, or choose another folder with paths.cache=DIR"
    )


def check_store(folder: Path) -> None:
    """Compare all arrays of a store with their checksums. Raises UserError where one differs."""
    store = _read(folder)
    assert store is not None
    for name, rows in store.rows.items():
        own = slice(rows[0], rows[-1] + 1)
        sums = array_sha256(store.images[own]), array_sha256(store.labels[own])
        if sums != store.sha256[name]:
            raise UserError(
                f"{folder}: is damaged ({name} is not what was prepared); remove it to have it "
                "prepared again"
            )


def _read(folder: Path) -> Store | None:
    """None where there is no store, or one with a file too short: it is then prepared again."""
    try:
        facts = json.loads((folder / FACTS).read_text())
        mapped = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("images", "labels")]
    except (OSError, ValueError, EOFError):
        return None
    images, labels = map(np.asarray, mapped)  # np.memmap's own class slows every index down
    rows, sha256, end = {}, {}, 0
    for name, length, *sums in facts["blocks"]:
        rows[name], sha256[name] = np.arange(end, end + length, dtype=np.int64), tuple(sums)
        end += length
    return Store(images, labels, rows, sha256, [tuple(note) for note in facts["notes"]])


def _write(part: Path, side: int, build: Callable[[Notes], Iterable[Block]]) -> None:
    """By ordinary writes, and not through a memory map: on a full disk a write fails with an error,
    a memory map with a signal that ends the process."""
    notes: Notes = []
    blocks = list(build(notes))
    labels = np.concatenate([labels for _, labels, _ in blocks]).astype(np.int64)
    np.save(part / "labels.npy", labels)
    with (part / "images.npy").open("wb") as file:
        shape = (len(labels), side, side, 3)
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for _, _, parts in blocks:
            for images in parts:
                file.write(np.ascontiguousarray(images).data)
        file.flush()
        os.fsync(file.fileno())
    images, end, facts = np.load(part / "images.npy", mmap_mode="r"), 0, []
    for name, own, _ in blocks:
        start, end = end, end + len(own)
        sums = array_sha256(images[start:end]), array_sha256(labels[start:end])
        facts.append([name, len(own), *sums])
    (part / FACTS).write_text(json.dumps({"blocks": facts, "notes": notes}))


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
