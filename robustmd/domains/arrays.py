"""Arrays on disk, as .npy files: written block by block, opened as memory maps."""

from __future__ import annotations

import json
import math
import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from robustmd.runs.files import write_atomically

DTYPES = (np.dtype("uint8"), np.dtype("<i8"))  # pixels and labels; nothing else is kept
MARK = ".mark"  # ends the name of the file that says how far an array has come
MARK_SECONDS = 5.0  # of work that a cut may cost


class ArrayWriter:
    """Writes a store's arrays into a folder, by ordinary writes and not through a memory map: on a
    full disk a write fails with an error, a memory map with a signal that ends the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, array: np.ndarray) -> None:
        """Write a whole array, uint8 or int64. Raises OSError where the disk does."""
        self.add_rows(name, array.shape, lambda row: [array], dtype=array.dtype)

    def add_examples(
        self, name: str, blocks: Iterable[np.ndarray], labels: np.ndarray, side: int
    ) -> None:
        """Write the arrays NAME_images, whose blocks are uint8 [n, side, side, 3], and NAME_labels;
        see `Store.examples`."""
        self.add_rows(f"{name}_images", (len(labels), side, side, 3), lambda row: blocks)
        self.add(f"{name}_labels", labels.astype(np.int64))

    def add_rows(
        self,
        name: str,
        shape: tuple[int, ...],
        blocks_from: Callable[[int], Iterable[np.ndarray]],
        notes: list[Any] | None = None,
        dtype: np.dtype = DTYPES[0],
    ) -> None:
        """Write an array block by block, going on with the rows that an earlier, cut off
        preparation has left.

        blocks_from: row r → the blocks of the rows from r on, shape[0] rows in all. notes: what is
        to be remembered of the rows (plain JSON): making a block may append to it, and what was
        noted about rows that are taken over is put there first; None: begin anew.
        """
        path, kind = file_of(self.folder, name), dtype.newbyteorder("<")
        mark, rows = self.folder / f"{name}{MARK}", 0
        if notes is not None:
            rows, noted = _read(mark)
            notes.extend(noted)
        path.touch()
        share(path)  # another member of the group may go on after a cut
        with path.open("r+b") as file:
            header = {"descr": kind.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.seek(rows * math.prod(shape[1:]) * kind.itemsize, os.SEEK_CUR)
            file.truncate()
            marked = time.monotonic()
            for block in blocks_from(rows):
                file.write(np.ascontiguousarray(block).data)
                rows += len(block)
                if notes is not None and time.monotonic() - marked >= MARK_SECONDS:
                    _to_disk(file)  # before the mark, so that it never promises what is not there
                    _write(mark, rows, notes)
                    marked = time.monotonic()
            _to_disk(file)
        if notes is not None:
            _write(mark, rows, notes)

    def remove_marks(self) -> None:
        """The arrays are whole."""
        for path in self.folder.glob(f"*{MARK}"):
            path.unlink()


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _write(mark: Path, rows: int, notes: list[Any]) -> None:
    text = json.dumps([rows, notes])
    write_atomically(mark, lambda stream: stream.write(text.encode()))
    share(mark)


def _read(mark: Path) -> tuple[int, list[Any]]:
    """How many rows are on the disk, and what was noted of them; none where no mark says so."""
    try:
        rows, notes = json.loads(mark.read_bytes())
        return int(rows), list(notes)
    except (OSError, ValueError, TypeError, RecursionError):
        return 0, []


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


def make_folder(folder: Path) -> None:
    """Make a folder and those above it. Below a folder that hands its group on (setgid), it is as
    open to that group as that one. Raises OSError."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.parent.stat().st_mode & stat.S_ISGID:
        share(folder)


def share(path: Path) -> None:
    """Give what was made in a folder that folder's permissions, whatever the umask; what belongs to
    somebody else stays as it is. Raises OSError."""
    allowed = path.parent.stat().st_mode & (0o2777 if path.is_dir() else 0o666)
    with suppress(PermissionError):
        path.chmod(allowed)
