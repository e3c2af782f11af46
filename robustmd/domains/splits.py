"""Seeded draws: who is held out, and a test split for a domain that has none."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on the seed and on whose they are alone."""
    entropy = [seed, *hashlib.sha256(name.encode()).digest()[:8]]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def held_out(total: int, share: float) -> int:
    """How many of `total` ≥ 2: round(share·total), at least 1, leaving at least 1."""
    return min(max(1, round(share * total)), total - 1)


def seeded_split(
    labels: np.ndarray, share: float, seed: int, domain: str
) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): sorted positions, int64, of the examples with these labels (int [n], n ≥ 2).

    The test split has `held_out` examples, of every class the same share but for rounding: the
    examples lie in the order of their classes, within a class in a random one, and every
    (1/share)-th is taken from a random start. It depends on the labels, the seed and the domain's
    name alone, so that all runs share it.
    """
    total = len(labels)
    count = held_out(total, share)
    rng = stream(seed, domain)
    by_class = np.lexsort((rng.random(total), labels))
    spaced = np.floor((np.arange(count) + rng.random()) * total / count).astype(np.int64)
    chosen = np.zeros(total, dtype=bool)
    chosen[by_class[spaced]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
