"""Arrays on disk, as .npy files: written block by block, opened as memory maps."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from robustmd.domains.checksums import BLOCK_BYTES, new_array_digest, update_array_digest
from robustmd.domains.journal import Journal, Mark
from robustmd.domains.manifest import FileState
from robustmd.domains.shared import share

DTYPES = (np.dtype("uint8"), np.dtype("<i8"))  # pixels and labels; nothing else is kept
MARK_SECONDS = 5.0  # of work that a cut may cost


def file_of(folder: Path, name: str) -> Path:
    """Where the array `name` of a store lies."""
    return folder / f"{name}.npy"


class ArrayWriter:
    """Writes a store's arrays into a folder, one after the other, and keeps their checksums.

    journal: where `add_resumable` marks how far it has come; without one it begins anew.

    Blocks go through ordinary writes, not through a memory map: on a full disk a write fails with
    an error, a memory map with a signal that ends the process.
    """

    def __init__(self, folder: Path, journal: Journal | None = None) -> None:
        self.folder, self.journal = folder, journal
        self.states: dict[str, FileState] = {}

    def add(
        self, name: str, dtype: str, shape: tuple[int, ...], blocks: Iterable[np.ndarray]
    ) -> None:
        """Write one array: `blocks` are its consecutive rows, in all shape[0] of them.

        dtype: "uint8" or "int64". Raises OSError where the disk does, ValueError if the blocks do
        not make up an array of that type and shape.
        """
        with file_of(self.folder, name).open("w+b") as file:
            growing = _Growing(file, name, dtype, shape)
            growing.begin()
            for block in blocks:
                growing.append(block)
            self.states[name] = growing.finished(file_of(self.folder, name))

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
            mark = self.journal.mark(name) if self.journal else None
            if mark and growing.resume(mark.rows, mark.checksum):
                notes.extend(mark.notes)
            else:
                growing.begin()
                self._mark(growing, [])
            noted, marked = len(notes), time.monotonic()
            for block in blocks_from(growing.rows):
                growing.append(block)
                if time.monotonic() - marked >= MARK_SECONDS:
                    self._mark(growing, notes[noted:])
                    noted, marked = len(notes), time.monotonic()
            self.states[name] = growing.finished(path)
            self._mark(growing, notes[noted:])

    def _mark(self, growing: _Growing, notes: list[Any]) -> None:
        if self.journal:
            growing.sync()  # before the mark, so that it never promises what is not there
            self.journal.add(growing.name, Mark(growing.rows, growing.checksum, notes))


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

    def resume(self, rows: int, checksum: str) -> bool:
        """Keep the first `rows` rows if they are there and have that checksum."""
        try:
            self.file.seek(0)
            np.lib.format.read_magic(self.file)
            shape, fortran, kind = np.lib.format.read_array_header_1_0(self.file)
        except (ValueError, OSError):
            return False
        if (shape, fortran, kind) != (self.shape, False, self.kind) or rows > shape[0]:
            return False
        left = rows * math.prod(shape[1:]) * self.kind.itemsize
        while left:
            raw = self.file.read(min(left, BLOCK_BYTES))
            if not raw:
                return False
            self._digest.update(raw)
            left -= len(raw)
        self.rows = rows
        self.file.truncate(self.file.tell())
        return self.checksum == checksum

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


def open_array(path: Path) -> np.ndarray:
    """The array as a read-only memory map. Raises OSError, or ValueError if it is not of ours."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype not in DTYPES or not array.flags.c_contiguous:
        raise ValueError(f"{path.name} holds {array.dtype} values, not uint8 or int64")
    # A plain array over the same map: np.memmap's own class slows every later index down.
    return np.asarray(array)
