"""What tells bytes from others: stamps of files, at the price of one look, and checksums.

Checksums are md5 where a publisher gives md5s, sha256 for what we prepared ourselves.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robustmd.runs.files import hex_digest


class Stamp(NamedTuple):
    """size [bytes]; mtime_ns: its time of change, which anybody can set; ctime_ns: when the file
    system last noted a change, which nobody can (on Windows: when the file was made)."""

    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The file's present one. Raises OSError."""
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


NO_FILE = Stamp(0, 0, 0)


def stamp_of(path: Path) -> Stamp:
    """A file's stamp; `NO_FILE` for what is no file or leads nowhere."""
    try:
        return Stamp.of(path) if stat.S_ISREG(path.stat().st_mode) else NO_FILE
    except (OSError, ValueError):  # ValueError: a null character
        return NO_FILE


def file_md5(path: Path) -> str:
    """Hex md5 of a file's bytes. Raises OSError."""
    with path.open("rb") as file:
        return hex_digest(file, hashlib.md5(usedforsecurity=False))


def array_sha256(array: np.ndarray) -> str:
    """Hex sha256 over an array's type, shape and values in row-major, little-endian order: the same
    whatever file, path, compression or byte order it came from."""
    head = f"{array.dtype.name} {tuple(map(int, array.shape))}\n"
    digest = hashlib.sha256(head.encode())
    digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def fingerprint(
    name: str, classes: Sequence[str], checksums: Mapping[str, Mapping[str, str]]
) -> str:
    """Hex sha256 that names a data set by its values.

    checksums: domain name → {"train_images": hex, …}, each an `array_sha256`; the order of the
    domains counts, that of a domain's arrays does not.
    """
    parts = [[domain, sorted(arrays.items())] for domain, arrays in checksums.items()]
    text = json.dumps([name, list(classes), parts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
