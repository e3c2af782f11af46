"""Arrays on disk, as .npy files: written block by block, opened as memory maps."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from robustmd.domains.checksums import new_array_digest, update_array_digest
from robustmd.domains.manifest import FileState

DTYPES = (np.dtype("uint8"), np.dtype("<i8"))  # pixels and labels; nothing else is kept


def file_of(folder: Path, name: str) -> Path:
    """Where the array `name` of a store lies."""
    return folder / f"{name}.npy"


class ArrayWriter:
    """Writes a store's arrays into a folder, one after the other, and keeps their checksums.

    Blocks go through ordinary writes, not through a memory map: on a full disk a write fails with
    an error, a memory map with a signal that ends the process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: dict[str, FileState] = {}

    def add(
        self, name: str, dtype: str, shape: tuple[int, ...], blocks: Iterable[np.ndarray]
    ) -> None:
        """Write one array: `blocks` are its consecutive rows, in all shape[0] of them.

        dtype: "uint8" or "int64". Raises OSError where the disk does, ValueError if the blocks do
        not make up an array of that type and shape.
        """
        kind = np.dtype(dtype).newbyteorder("<")
        digest = new_array_digest(kind, shape)
        rows = 0
        path = file_of(self.folder, name)
        with path.open("wb") as file:
            header = {"descr": kind.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                if block.dtype != kind or block.shape[1:] != shape[1:]:
                    raise ValueError(f"{name}: block {block.dtype} {block.shape} in {kind} {shape}")
                file.write(np.ascontiguousarray(block).data)
                update_array_digest(digest, block)
                rows += len(block)
            file.flush()
            os.fsync(file.fileno())
        if rows != shape[0]:
            raise ValueError(f"{name}: {rows} rows written, {shape[0]} announced")
        self.states[name] = FileState.of(path, digest.hexdigest())


def open_array(path: Path) -> np.ndarray:
    """The array as a read-only memory map. Raises OSError, or ValueError if it is not of ours."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype not in DTYPES or not array.flags.c_contiguous:
        raise ValueError(f"{path.name} holds {array.dtype} values, not uint8 or int64")
    # A plain array over the same map: np.memmap's own class slows every later index down.
    return np.asarray(array)
