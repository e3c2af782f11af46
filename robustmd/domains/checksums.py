"""What tells bytes from others: stamps of files, at the price of one look, and checksums.

Checksums are md5 where a publisher gives md5s, sha256 for what we prepared ourselves.
"""

from __future__ import annotations

import gzip
import hashlib
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from robustmd.errors import UserError, readable
from robustmd.runs.files import hex_digest


class Stamp(NamedTuple):
    """size [bytes]; mtime_ns: its time of change, which anybody can set; ctime_ns: when the file
    system last noted a change, which nobody can (on Windows: when the file was made)."""

    size: int
    mtime_ns: int
    ctime_ns: int


NO_FILE = Stamp(0, 0, 0)


def stamp_of(path: Path) -> Stamp:
    """A file's present stamp; `NO_FILE` for what is no file or leads nowhere."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a null character
        return NO_FILE
    is_file = stat.S_ISREG(found.st_mode)
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns) if is_file else NO_FILE


def content_md5(path: Path) -> str:
    """Hex md5 of a file's content, decompressed. Raises UserError if it cannot be read."""
    with opened(path) as file:
        return hex_digest(file, hashlib.md5(usedforsecurity=False))


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, decompressed. Raises UserError for what cannot be read within the block."""
    with readable(path):
        try:
            with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
                yield file  # type: ignore[misc]  # GzipFile reads like a file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise refusal(path, f"its compressed data are broken ({error})") from error


def refusal(path: Path, fault: str) -> UserError:
    """What is said of a file whose bytes are not what its format asks for."""
    return UserError(
        f"{path} cannot be used: {fault}; delete it to have it fetched again, or put the original "
        "in its place"
    )


def array_sha256(array: np.ndarray) -> str:
    """Hex sha256 over an array's type, shape and values in row-major, little-endian order: the same
    whatever file, path, compression or byte order it came from."""
    head = f"{array.dtype.name} {tuple(map(int, array.shape))}\n"
    digest = hashlib.sha256(head.encode())
    digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()
