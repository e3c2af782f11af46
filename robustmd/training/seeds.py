"""One seed, many independent streams: counter-based, drawn on the host, alike on every device."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np


def stream(seed: int, purpose: str, *, block: int = 0) -> np.random.Generator:
    """The random stream of one purpose (Philox 4×64), independent of every other purpose's.

    Args:
        seed: the run's seed, 0 <= seed < 2**63.
        purpose: what the numbers are for, e.g. "batches/mnist"; another purpose, another stream.
        block: a position to start at, >= 0: any block is reached at once, which is what lets a
            run go on from the middle.
    """
    key = np.array([seed, zlib.crc32(purpose.encode())], dtype=np.uint64)
    counter = np.array([0, 0, 0, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def torch_seed(seed: int, purpose: str) -> int:
    """A seed for torch's own generator, for what torch draws itself (initial weights)."""
    return int(stream(seed, purpose).integers(2**63 - 1))


def content_hash(*arrays: np.ndarray) -> str:
    """sha256 (first 16 hex digits) over the arrays' types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
