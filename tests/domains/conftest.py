"""How much is decoded, and pictures in formats that Pillow does not write."""

import struct
import zlib

import numpy as np
import pytest

from robustmd.domains import prepared_images


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files were decoded, one entry for each preparation of a domain."""
    counts: list[int] = []
    decoded = prepared_images.decoded

    def counting(paths, size):
        counts.append(len(paths))
        return decoded(paths, size)

    monkeypatch.setattr(prepared_images, "decoded", counting)
    return counts


@pytest.fixture(scope="session")
def png_16():
    """A 16-bit PNG's bytes, of gray [H, W] or RGB [H, W, 3] values."""

    def encode(values: np.ndarray, transparent: int | tuple[int, ...] | None = None) -> bytes:
        """Written from the format's description alone: Pillow writes no 16-bit RGB."""

        def chunk(kind: bytes, body: bytes) -> bytes:
            return (
                struct.pack(">I", len(body))
                + kind
                + body
                + struct.pack(">I", zlib.crc32(kind + body))
            )

        height, width = values.shape[:2]
        header = struct.pack(">IIBBBBB", width, height, 16, 0 if values.ndim == 2 else 2, 0, 0, 0)
        clear = np.atleast_1d(transparent or 0).astype(">u2").tobytes()
        lines = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
        return (
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", header)
            + (b"" if transparent is None else chunk(b"tRNS", clear))
            + chunk(b"IDAT", zlib.compress(lines))
            + chunk(b"IEND", b"")
        )

    return encode
