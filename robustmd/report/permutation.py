"""Exact paired permutation test and Holm's correction: no distribution is assumed."""

from collections.abc import Sequence

import numpy as np

FEWEST = 6  # pairs: below, no outcome has p < 0.05, since the smallest is 2/2^n
MOST = 40  # pairs for which the 2^n sign patterns are counted; more has no need of exactness
DRAWS = 200_000  # sign patterns drawn above that


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided p: the share of the 2^n sign patterns s with |Σ s_i d_i| ≥ |Σ d_i|.

    Under "which of the two is which is a coin toss", every pattern is equally likely, so that
    P(p ≤ α) ≤ α whatever the differences are distributed like. None for fewer than 6 pairs.
    (1, 2, 3, 4, 5, 6) gives 2/64.
    """
    d = np.asarray(differences, np.float64)
    if len(d) < FEWEST:
        return None
    bound = abs(d.sum()) - 1e-9 * np.abs(d).sum()  # equal sums may differ by rounding
    if len(d) > MOST:
        return _drawn(d, bound)
    # Meet in the middle: every pattern's sum is one of the first half's plus one of the second's.
    first, second = _signed_sums(d[: len(d) // 2]), np.sort(_signed_sums(d[len(d) // 2 :]))
    inside = np.searchsorted(second, bound - first, "left") - np.searchsorted(
        second, -bound - first, "right"
    )
    count = 2 ** len(d) - int(np.maximum(inside, 0).sum())
    return count / 2 ** len(d)


def _signed_sums(d: np.ndarray) -> np.ndarray:
    """All 2^n sums Σ ±d_i."""
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _drawn(d: np.ndarray, bound: float) -> float:
    """(1 + hits)/(1 + draws), which is still a valid p; seeded, so that reports repeat."""
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        signs = random.integers(0, 2, (DRAWS // 100, len(d)), np.int8) * 2.0 - 1.0
        hits += int((np.abs(signs @ d) >= bound).sum())
    return (1 + hits) / (1 + DRAWS)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment over those that are there: with m of them in ascending order,
    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)). Values of None stay None.

    (0.01, 0.04, 0.03) gives (0.03, 0.06, 0.06).
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = largest
    return adjusted
