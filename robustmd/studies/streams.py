"""Random numbers of the study: one seed, an independent counter-based stream for every purpose."""

import zlib

import numpy as np


def stream(seed: int, purpose: str, block: int = 0) -> np.random.Generator:
    """The stream (Philox 4×64) of one seed ≥ 0 and purpose, from its block-th position."""
    key = np.array([seed, zlib.crc32(purpose.encode())], dtype=np.uint64)
    counter = np.array([0, 0, 0, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
