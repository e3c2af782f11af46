"""Arrays on disk, as .npy files: written block by block, opened as memory maps."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from robustmd.domains.checksums import (
    BLOCK_BYTES,
    FileState,
    new_array_digest,
    update_array_digest,
)
from robustmd.domains.shared_folders import share
from robustmd.runs.files import write_atomically

DTYPES = (np.dtype("uint8"), np.dtype("<i8"))  # pixels and labels; nothing else is kept
MARKS = "marks.json"
MARK_SECONDS = 5.0  # of work that a cut may cost


@dataclass(frozen=True)
class Mark:
    """How far an array has come: its first rows that are on the disk, their checksum, and what was
    noted of them (plain JSON)."""

    rows: int
    checksum: str
    notes: list[Any]


class ArrayWriter:
    """Writes a store's arrays into a folder, one after the other, and keeps their checksums.

    resumable: `add_resumable` marks how far it has come in `MARKS`, and goes on after the marks
        that are there. None is believed: their checksums are compared with the rows.

    Blocks go through ordinary writes, not through a memory map: on a full disk a write fails with
    an error, a memory map with a signal that ends the process.
    """

    def __init__(self, folder: Path, resumable: bool = False) -> None:
        self.folder, self.resumable = folder, resumable
        self.states: dict[str, FileState] = {}
        self._marks = _read_marks(folder / MARKS) if resumable else {}

    def add(
        self, name: str, dtype: str, shape: tuple[int, ...], blocks: Iterable[np.ndarray]
    ) -> None:
        """Write one array: `blocks` are its consecutive rows, in all shape[0] of them.

        dtype: "uint8" or "int64". Raises OSError where the disk does, ValueError if the blocks do
        not make up an array of that type and shape.
        """
        path = file_of(self.folder, name)
        with path.open("w+b") as file:
            growing = _Growing(file, name, dtype, shape)
            growing.begin()
            for block in blocks:
                growing.append(block)
            self.states[name] = growing.finished(path)

    def add_resumable(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        blocks_from: Callable[[int], Iterable[np.ndarray]],
        notes: list[Any],
    ) -> None:
        """As `add`, but going on with the rows that an earlier, cut off preparation has left.

        blocks_from: row r → the blocks of the rows from r on
        notes: what is to be remembered of the rows (plain JSON). Making a block may append to it;
            what was noted about rows that are taken over is put there first.
        """
        path = file_of(self.folder, name)
        path.touch()
        share(path)  # another member of the group may go on after a cut
        with path.open("r+b") as file:
            growing = _Growing(file, name, dtype, shape)
            mark = self._marks.get(name)
            if mark and growing.resume(mark):
                notes.extend(mark.notes)
            else:
                growing.begin()
            marked = time.monotonic()
            for block in blocks_from(growing.rows):
                growing.append(block)
                if time.monotonic() - marked >= MARK_SECONDS:
                    self._mark(growing, notes)
                    marked = time.monotonic()
            self.states[name] = growing.finished(path)
            self._mark(growing, notes)

    def _mark(self, growing: _Growing, notes: list[Any]) -> None:
        if self.resumable:
            growing.sync()  # before the mark, so that it never promises what is not there
            self._marks[growing.name] = Mark(growing.rows, growing.checksum, notes)
            text = json.dumps({name: asdict(mark) for name, mark in self._marks.items()})
            write_atomically(self.folder / MARKS, lambda stream: stream.write(text.encode()))

    def remove_marks(self) -> None:
        """The arrays are whole."""
        (self.folder / MARKS).unlink(missing_ok=True)


def _read_marks(path: Path) -> dict[str, Mark]:
    """None where the file is not one of marks."""
    try:
        content = json.loads(path.read_bytes())
        return {
            name: Mark(int(mark["rows"]), str(mark["checksum"]), list(mark["notes"]))
            for name, mark in content.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


class _Growing:
    """An array's file while it grows, with the checksum of the rows that it holds."""

    def __init__(self, file: BinaryIO, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.file, self.name, self.shape = file, name, shape
        self.kind = np.dtype(dtype).newbyteorder("<")
        self.rows = 0
        self._digest = new_array_digest(self.kind, shape)

    @property
    def checksum(self) -> str:
        return self._digest.hexdigest()

    def begin(self) -> None:
        """The file with its head and no rows."""
        self.file.seek(0)
        self.file.truncate()
        self.rows, self._digest = 0, new_array_digest(self.kind, self.shape)
        header = {"descr": self.kind.str, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(self.file, header)

    def resume(self, mark: Mark) -> bool:
        """Keep the rows of the mark if they are there and have its checksum."""
        try:
            self.file.seek(0)
            np.lib.format.read_magic(self.file)
            shape, fortran, kind = np.lib.format.read_array_header_1_0(self.file)
        except (ValueError, OSError):
            return False
        is_ours = (shape, fortran, kind) == (self.shape, False, self.kind)
        if not is_ours or not 0 <= mark.rows <= shape[0]:
            return False
        left = mark.rows * math.prod(shape[1:]) * self.kind.itemsize
        while left:
            raw = self.file.read(min(left, BLOCK_BYTES))
            if not raw:
                return False
            self._digest.update(raw)
            left -= len(raw)
        self.rows = mark.rows
        self.file.truncate(self.file.tell())
        return self.checksum == mark.checksum

    def append(self, block: np.ndarray) -> None:
        if block.dtype != self.kind or block.shape[1:] != self.shape[1:]:
            raise ValueError(
                f"{self.name}: block {block.dtype} {block.shape} in {self.kind} {self.shape}"
            )
        self.file.write(np.ascontiguousarray(block).data)
        update_array_digest(self._digest, block)
        self.rows += len(block)

    def sync(self) -> None:
        """Have the rows reach the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def finished(self, path: Path) -> FileState:
        """The whole file's state. Raises ValueError if rows are missing or too many."""
        self.sync()
        if self.rows != self.shape[0]:
            raise ValueError(f"{self.name}: {self.rows} rows written, {self.shape[0]} announced")
        return FileState.of(path, self.checksum)


def file_of(folder: Path, name: str) -> Path:
    """Where the array `name` of a store lies."""
    return folder / f"{name}.npy"


def open_array(path: Path) -> np.ndarray:
    """The array as a read-only memory map. Raises OSError, or ValueError if it is not of ours."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype not in DTYPES or not array.flags.c_contiguous:
        raise ValueError(f"{path.name} holds {array.dtype} values, not uint8 or int64")
    # A plain array over the same map: np.memmap's own class slows every later index down.
    return np.asarray(array)
