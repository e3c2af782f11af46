"""The IDX format of MNIST: a header with the array's type and shape, then its bytes.

    0x00 0x00 TYPE RANK   then RANK sizes as big-endian unsigned 32-bit, then the values

Only unsigned bytes (TYPE 0x08) are read. The header is never trusted with memory: its promise is
held against the file before anything of that size is allocated, and compressed files are expanded
no further than promised.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from robustmd.errors import UserError

UNSIGNED_BYTE = 0x08
MAX_BYTES = 1 << 31  # 40 times MNIST; more cannot be meant
DEFLATE_RATIO = 1032  # no deflate stream expands by more
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class IdxFile:
    """values: uint8, of the header's shape; md5: hex, of the decompressed file."""

    values: np.ndarray
    md5: str


def read(path: Path, rank: int) -> IdxFile:
    """Read an IDX file, compressed by gzip (a name ending in .gz) or not.

    rank: the number of sizes expected: 1 for labels, 3 for images.
    Raises UserError if it is not such a file from its first byte to its last.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            return _read(path, file, rank)  # type: ignore[arg-type]  # GzipFile reads like a file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _refusal(path, f"its compressed data are broken ({error})") from error
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from error


def _read(path: Path, file: BinaryIO, rank: int) -> IdxFile:
    header = file.read(4 + 4 * rank)
    if len(header) < 4 + 4 * rank:
        raise _refusal(path, f"it ends after {len(header)} bytes, within its header")
    zeros, kind, dimensions = struct.unpack(">HBB", header[:4])
    if zeros != 0 or kind != UNSIGNED_BYTE or dimensions != rank:
        wanted = f"0000{UNSIGNED_BYTE:02x}{rank:02x}"
        raise _refusal(path, f"it begins with {header[:4].hex()}, where {wanted} is due")
    shape = struct.unpack(f">{rank}I", header[4:])
    promised = math.prod(shape)
    _check_promise(path, shape, promised, len(header))
    digest = hashlib.md5(header, usedforsecurity=False)
    body = bytearray()
    # One byte more than promised is asked for, to notice a file that goes on.
    while len(body) <= promised:
        block = file.read(min(BLOCK_BYTES, promised + 1 - len(body)))
        if not block:
            break
        digest.update(block)
        body += block
    if len(body) != promised:
        found = "more" if len(body) > promised else f"only {len(body):,}"
        raise _refusal(path, f"its header promises {promised:,} values, but {found} follow")
    return IdxFile(np.frombuffer(body, dtype=np.uint8).reshape(shape), digest.hexdigest())


def _check_promise(path: Path, shape: tuple[int, ...], promised: int, header: int) -> None:
    """Hold the promised size against the file's, before allocating."""
    size = path.stat().st_size
    possible = size * DEFLATE_RATIO if path.suffix == ".gz" else size - header
    if promised == 0 or promised > min(possible, MAX_BYTES):
        sizes = "×".join(map(str, shape))
        raise _refusal(
            path, f"its header promises {sizes} values, which {size:,} bytes cannot hold"
        )


def _refusal(path: Path, fault: str) -> UserError:
    return UserError(
        f"{path} is not a whole IDX file: {fault}; delete it to have it fetched again, "
        "or put the original in its place"
    )
