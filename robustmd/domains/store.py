"""Images that are prepared once and mapped by every later run.

A store is a folder with images.npy, labels.npy and facts.json. Its name ends in two hashes: of what
is prepared, and of the files that it is made from, their sizes and times. What has changed has
another name, so that no store is ever out of date. It is made beside its place and renamed when
whole. What it holds is recognised by the arrays' stamps, and only where these differ by checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock, Timeout

from robustmd.domains.domain_set import Split, array_sha256
from robustmd.errors import Say, UserError, first_line
from robustmd.runs.files import reading, remove, write_atomically

VERSION = 3  # of all that `build` functions write: raise it where one writes other arrays
ARRAYS, FACTS = ("images", "labels"), "facts.json"
LARGEST_FACTS = 1 << 28  # bytes

Notes = list[tuple[int, str]]  # of rows of the images, as why one could not be read


class Images(NamedTuple):
    """What `build` gives: labels int64 [n], and blocks uint8 [m, side, side, 3] of n images."""

    labels: np.ndarray
    blocks: Iterable[np.ndarray]


class Block(NamedTuple):
    """Where such images lie: `length` rows from `first`; and their `array_sha256`."""

    first: int
    length: int
    images: str
    labels: str

    def rows(self) -> np.ndarray:
        return np.arange(self.first, self.first + self.length, dtype=np.int64)


class Store(NamedTuple):
    """images: uint8 [N, side, side, 3] and labels: int64 [N], read-only memory maps."""

    images: np.ndarray
    labels: np.ndarray
    blocks: dict[str, Block]
    notes: Notes

    def splits(self, prefix: str, key: str = "") -> tuple[dict[str, Split], dict[str, str]]:
        """The splits whose blocks are called PREFIXtrain and PREFIXtest, and their checksums by
        KEYtrain_images and so on."""
        splits, sums = {}, {}
        for name in ("train", "test"):
            block = self.blocks[f"{prefix}{name}"]
            splits[name] = Split(self.images, self.labels, block.rows(), first=block.first)
            sums[f"{key}{name}_images"] = block.images
            sums[f"{key}{name}_labels"] = block.labels
        return splits, sums


def stamp_of(path: Path) -> list[int]:
    """A file's size, its time of change, and the time of change that no program can set back; []
    for what is no file or leads nowhere."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a null character
        return []
    is_file = stat.S_ISREG(found.st_mode)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns] if is_file else []


def open_store(
    cache: Path,
    name: str,
    settings: object,
    content: object,
    names: Sequence[str],
    build: Callable[[Notes], Iterable[Images]],
    say: Say,
) -> Store:
    """The store in `cache`, which is prepared first if need be.

    settings: what is prepared; content: which files it is made from, as paths and stamps; both
    JSON. names: of the blocks that `build` gives, in order; while they are read, it may append to
    the notes. Raises UserError if the cache cannot be written; and what `build` raises.
    """
    kind = f"{name}-{_hash([VERSION, settings])}"
    folder = cache / f"{kind}-{_hash(content)}"
    store, fault = _read(folder, names)
    if store is not None:
        return store  # who may only read needs no lock
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / f".{kind}.lock", mode=0o666)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say(f"waiting for another process, which is preparing {name}")
            lock.acquire()
        try:
            store, fault = _read(folder, names)  # another may have made it meanwhile
            if store is None:
                damaged = f"the prepared {name} data in {folder} is damaged ({fault}); "
                say(f"{damaged if fault else ''}preparing {name} (once; kept in {folder})")
                _prepare(cache, kind, folder, names, build)
                store, fault = _read(folder, names)
        finally:
            lock.release()
    except OSError as error:
        fault = str(error.strerror or error)
    if store is None:
        raise UserError(
            f"cannot keep the prepared {name} data in {cache} ({fault}); free space there or make "
            "it writable, or choose another folder with paths.cache=DIR"
        )
    return store


def read_through(folder: Path) -> None:
    """Read all of a store. Raises UserError for one that is not what it was prepared as."""
    store, fault = _read(folder)
    fault = fault if store is None else _difference(store)
    if fault:
        raise UserError(f"{folder}: is damaged ({fault}); remove it to have it prepared again")


def _read(folder: Path, names: Sequence[str] = ()) -> tuple[Store | None, str]:
    """The store, or why there is none; "" where there is no such folder. The one place where the
    bytes of a store are met: whatever they are, they are answered with a reason."""
    if not os.path.lexists(folder):
        return None, ""
    try:
        if folder.is_symlink():
            raise ValueError("it is a link")
        with reading(folder / FACTS, LARGEST_FACTS) as stream:
            digest, _, text = stream.read().partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            raise ValueError(f"{FACTS} is not as it was written")
        facts = json.loads(text)
        blocks = {str(name): Block(*block) for name, block in facts["blocks"].items()}
        notes = [(int(row), str(note)) for row, note in facts["notes"]]
        images, labels = (_map(folder / f"{name}.npy") for name in ARRAYS)
        store = Store(images, labels, blocks, notes)
        side, kinds = store.images.shape[1], (store.images.dtype.str, store.labels.dtype.str)
        shapes = store.images.shape, store.labels.shape
        count = sum(block.length for block in blocks.values())
        is_right = kinds == ("|u1", "<i8") and shapes == ((count, side, side, 3), (count,))
        if not is_right or (names and [*names] != [*blocks]):
            raise ValueError("its arrays are not those of these data")
        stamps = [stamp_of(folder / f"{name}.npy") for name in ARRAYS]
        if facts["stamps"] != stamps:
            if fault := _difference(store):
                raise ValueError(fault)
            with suppress(OSError):  # else the next start compares checksums as well
                _write_facts(folder, {**facts, "stamps": stamps})
        return store, ""
    except Exception as error:  # of a damaged or foreign folder anything
        return None, first_line(error)[:200]


def _map(path: Path) -> np.ndarray:
    with reading(path):  # neither a link nor a pipe
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not array.flags.c_contiguous:
        raise ValueError(f"{path.name} is not in C order")
    return np.asarray(array)  # a plain array: np.memmap's own class slows every later index down


def _difference(store: Store) -> str:
    """Which block is not what was prepared, in words; "" where all are. Reads everything."""
    for name, block in store.blocks.items():
        rows = slice(block.first, block.first + block.length)
        sums = array_sha256(store.images[rows]), array_sha256(store.labels[rows])
        if sums != (block.images, block.labels):
            return f"{name} is not what was prepared"
    return ""


def _prepare(
    cache: Path,
    kind: str,
    folder: Path,
    names: Sequence[str],
    build: Callable[[Notes], Iterable[Images]],
) -> None:
    """Build beside the store's place, then put it there; what was made from other files goes. Needs
    the lock."""
    part = cache / f".{kind}.part"
    for leftover in [path for path in (part, folder) if os.path.lexists(path)]:
        remove(leftover)  # of a process that was killed, or damaged
    part.mkdir()
    try:
        _write(part, names, build)
        for old in cache.glob(f"{kind}-*"):
            with suppress(OSError):  # another user's
                remove(old)
        part.rename(folder)
    except BaseException:
        remove(part)
        raise


def _write(part: Path, names: Sequence[str], build: Callable[[Notes], Iterable[Images]]) -> None:
    """By ordinary writes, and not through a memory map: on a full disk a write fails with an error,
    a memory map with a signal that ends the process."""
    notes: Notes = []
    parts = list(build(notes))
    labels = np.concatenate([images.labels for images in parts]).astype(np.int64)
    blocks, first = {}, 0
    with (part / "images.npy").open("wb") as file:
        for name, images in zip(names, parts, strict=True):
            count, digest = len(images.labels), hashlib.sha256()
            for number, block in enumerate(images.blocks):
                if not file.tell():
                    shape = (len(labels), *block.shape[1:])
                    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(file, header)
                if not number:  # as `array_sha256` begins
                    digest.update(f"uint8 {(count, *block.shape[1:])}\n".encode())
                pixels = np.ascontiguousarray(block).data
                file.write(pixels)
                digest.update(pixels)
            of_labels = array_sha256(labels[first : first + count])
            blocks[name] = Block(first, count, digest.hexdigest(), of_labels)
            first += count
        file.flush()
        os.fsync(file.fileno())
    np.save(part / "labels.npy", labels)
    stamps = [stamp_of(part / f"{name}.npy") for name in ARRAYS]
    _write_facts(part, {"blocks": blocks, "notes": notes, "stamps": stamps})


def _write_facts(folder: Path, facts: dict[str, object]) -> None:
    text = json.dumps(facts, indent=1).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    write_atomically(folder / FACTS, lambda stream: stream.write(digest + b"\n" + text))


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
