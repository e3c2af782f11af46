"""The bytes of one element of a MATLAB file, as they stand or compressed by zlib.

Both readers hand out exactly what is asked for, or raise FormatError, and never hold more than
that.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

DEFLATE_RATIO = 1032  # no deflate stream expands by more
BLOCK_BYTES = 1 << 18


class FormatError(Exception):
    """What is wrong with the file, in words."""


class Plain:
    """An element of `size` bytes that begins where the file stands."""

    compressed = False

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size
        self.possible = size  # bytes that the element can hold

    def read(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > self._left:
            raise FormatError("an array is longer than its element")
        self._left -= count
        return exactly(self._file, count)

    def finish(self) -> None:
        """Check that nothing but padding is left."""
        if self._left >= 8:
            raise FormatError("an array is shorter than its element")


class Inflated:
    """A compressed element of `size` bytes, expanded as read and no further than asked."""

    compressed = True

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size
        self.possible = size * DEFLATE_RATIO
        self._zlib = zlib.decompressobj()

    def read(self, count: int) -> bytes:
        """The next `count` bytes, expanded."""
        if count > self.possible:
            raise FormatError("an array is longer than its element can hold")
        parts = bytearray()
        while len(parts) < count:
            part = self._expand(count - len(parts))
            if not part and self._spent:
                raise FormatError("the compressed data end too early")
            parts += part
        return bytes(parts)

    def finish(self) -> None:
        """Check that nothing but padding is left, and zlib's checksum of all that was read."""
        padding = 0
        while not self._zlib.eof:
            part = self._expand(8)
            padding += len(part)
            if padding >= 8:
                raise FormatError("an array is shorter than its element")
            if not part and self._spent and not self._zlib.eof:
                raise FormatError("the compressed data end too early")

    @property
    def _spent(self) -> bool:
        return self._zlib.eof or (self._left == 0 and not self._zlib.unconsumed_tail)

    def _expand(self, count: int) -> bytes:
        raw = self._zlib.unconsumed_tail
        if not raw and self._left:
            raw = exactly(self._file, min(BLOCK_BYTES, self._left))
            self._left -= len(raw)
        try:
            return self._zlib.decompress(raw, count)
        except zlib.error as error:
            raise FormatError(f"the compressed data are broken ({error})") from error


def exactly(file: BinaryIO, count: int) -> bytes:
    """The next `count` bytes of a file. Raises FormatError if it ends before."""
    raw = file.read(count)
    if len(raw) < count:
        raise FormatError("the file ends too early")
    return raw
