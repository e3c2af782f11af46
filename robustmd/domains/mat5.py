"""MATLAB level 5 files, as far as numeric arrays go: looked through strictly, read as a stream.

scipy.io.loadmat reads these files too, but not every file: on garbled headers scipy 1.17 ends the
process by a segmentation fault (29 of 3,000 files with one to three changed bytes), which no caller
can catch. Here every size is held against what is left of the file before it is used, only
numeric arrays are read, and memory stays at one block however large the array.

The format: a header of 128 bytes, then elements, each a tag (type, bytes) with its data. An
element of type 14 is an array: its class, sizes, name and values are elements within it, each
padded to 8 bytes. An element of type 15 is one such element compressed by zlib. A tag whose upper
half is not 0 carries up to 4 bytes of data in itself.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from robustmd.domains.mat5_elements import FormatError, Inflated, Plain, exactly

HEADER_BYTES = 128
VERSION_AND_ORDER = b"\x00\x01IM"  # 0x0100, little-endian
MATRIX, COMPRESSED = 14, 15
NAME_TYPES = (1, 16)
INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))
NUMERIC = ("double", "single", *INTEGERS)
CLASSES = dict(enumerate(("cell", "struct", "object", "char", "sparse", *NUMERIC), start=1))
VALUE_TYPES = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8"}
VALUE_TYPES |= {12: "<i8", 13: "<u8"}
COMPLEX = 0x08
MAX_DIMENSIONS = 32
MAX_NAME = 63  # MATLAB's own limit
MAX_ELEMENTS = 1000


@dataclass(frozen=True)
class Variable:
    """One array of a file.

    name, shape: as in MATLAB, whose values run with the first index fastest
    kind: "uint8", "double", "struct", …; only of the numeric ones can the values be read
    dtype: of the values as they are stored, which may be a smaller type than the class's
    element, size, compressed: where the array's element lies in the file
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype | None
    element: int
    size: int
    compressed: bool


def variables(path: Path) -> list[Variable]:
    """The file's arrays, in order, without reading their values. Raises FormatError, OSError."""
    found: list[Variable] = []
    with path.open("rb") as file:
        end = path.stat().st_size
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or header[124:] != VERSION_AND_ORDER:
            raise FormatError("it does not begin as a little-endian MATLAB level 5 file does")
        place = HEADER_BYTES
        while place < end:
            if len(found) == MAX_ELEMENTS:
                raise FormatError(f"it has more than {MAX_ELEMENTS} arrays")
            kind, size = struct.unpack("<II", exactly(file, 8))
            if kind not in (MATRIX, COMPRESSED):
                raise FormatError(f"at byte {place} stands type {kind}, where an array is due")
            if size > end - place - 8:
                raise FormatError(f"it ends within the array at byte {place}")
            found.append(_head(_open(file, size, kind == COMPRESSED), place + 8, size)[0])
            place += 8 + size
            file.seek(place)
    return found


def blocks(path: Path, variable: Variable, block: int) -> Iterator[np.ndarray]:
    """The values of a numeric array in stored order: 1-D arrays of `block` values; a shorter last.

    The end of the element, with zlib's own checksum where it is compressed, is checked after the
    last block. Raises FormatError, OSError.
    """
    if variable.dtype is None:
        raise FormatError(f"{variable.name} is {variable.kind}, not numeric")
    with path.open("rb") as file:
        file.seek(variable.element)
        data = _open(file, variable.size, variable.compressed)
        again, inline = _head(data, variable.element, variable.size)
        if again != variable:
            raise FormatError("it changed while it was read")
        if inline is not None:
            yield np.frombuffer(inline, dtype=variable.dtype)
            return
        left = math.prod(variable.shape)
        while left:
            count = min(block, left)
            raw = data.read(count * variable.dtype.itemsize)
            yield np.frombuffer(raw, dtype=variable.dtype)
            left -= count
        data.finish()


def _open(file: BinaryIO, size: int, compressed: bool) -> Plain | Inflated:
    """The inside of an array's element, the file standing at its start."""
    if not compressed:
        return Plain(file, size)
    data = Inflated(file, size)
    kind, inner = struct.unpack("<II", data.read(8))
    if kind != MATRIX or inner > data.possible:
        raise FormatError(f"compressed data hold type {kind} of {inner} bytes, not an array")
    return data


def _head(data: Plain | Inflated, element: int, size: int) -> tuple[Variable, bytes | None]:
    """Read an array's element up to its values, and check that these fill its sizes exactly.

    Returns with it the values themselves where they stand in their tag.
    """
    code, flags = _part(data, (6,), range(8, 9))[:2]
    if code not in CLASSES:
        raise FormatError(f"an array is of class {code}, which is none")
    sizes = _part(data, (5,), range(8, 4 * MAX_DIMENSIONS + 1, 4))
    shape = struct.unpack(f"<{len(sizes) // 4}i", sizes)
    if min(shape) < 0:
        raise FormatError(f"an array has the sizes {list(shape)}")
    name = _part(data, NAME_TYPES, range(MAX_NAME + 1)).decode("ascii", "replace")
    if not (name.isidentifier() or name == ""):
        raise FormatError(f"an array is called {name!r}")
    dtype = inline = None
    if CLASSES[code] in NUMERIC and not flags & COMPLEX:
        kind, length, inline = _tag(data)
        if kind not in VALUE_TYPES:
            raise FormatError(f"the values of {name!r} are of type {kind}, which is no number")
        dtype = np.dtype(VALUE_TYPES[kind])
        if length != math.prod(shape) * dtype.itemsize or length > data.possible:
            raise FormatError(f"{name!r} has {length} bytes of values, other than its sizes need")
    return Variable(name, CLASSES[code], shape, dtype, element, size, data.compressed), inline


def _part(data: Plain | Inflated, kinds: tuple[int, ...], lengths: range) -> bytes:
    """One small element within an array's: its data, with the padding to 8 bytes skipped."""
    kind, length, inline = _tag(data)
    if kind not in kinds or length not in lengths:
        raise FormatError(f"an array's head holds type {kind} of {length} bytes")
    if inline is not None:
        return inline
    return data.read(length + -length % 8)[:length]


def _tag(data: Plain | Inflated) -> tuple[int, int, bytes | None]:
    """Type and length of the next element, and its data where they are in the tag itself."""
    first, second = struct.unpack("<I4s", data.read(8))
    length = first >> 16
    if length == 0:
        return first, struct.unpack("<I", second)[0], None
    if length > 4:
        raise FormatError(f"a small element announces {length} bytes, where 4 fit")
    return first & 0xFFFF, length, second[:length]
