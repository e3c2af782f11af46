"""The exact paired permutation test against counting by hand and by brute force; Holm by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustmd.report.verdict import holm, sign_flip_p


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 2, 3, 4, 5, 6], 2 / 64),  # only all plus and all minus reach 21
        ([-1, 2, 3, 4, 5, 6], 4 / 64),  # 19: and those with 1 the other way
        ([1, 1, 1, 1, 1, 1], 2 / 64),
        ([1, 1, 1, 1, 1, -1], 14 / 64),  # |sum| 4 or 6: 2 (1 + 6)
        ([0, 0, 0, 0, 0, 0], 1.0),
        ([0.1] * 6 + [0.3], 4 / 128 - 2 / 128),  # equal sums despite rounding
    ],
)
def test_by_hand(differences, p):
    assert sign_flip_p(differences) == p


def test_there_is_none_below_six_pairs():
    assert sign_flip_p([1.0] * 5) is None


@settings(max_examples=50)
@given(st.lists(st.integers(-9, 9).map(lambda i: i / 10), min_size=6, max_size=9))
def test_by_brute_force(differences):
    d = np.array(differences)
    sums = np.array([abs(np.dot(signs, d)) for signs in product((1, -1), repeat=len(d))])
    expected = float((sums >= abs(d.sum()) - 1e-9).mean())
    assert sign_flip_p(differences) == expected


def test_many_pairs_are_counted_exactly_and_very_many_drawn():
    assert sign_flip_p([1.0] * 30) == 2 / 2**30
    drawn = sign_flip_p([1.0, -1.0] * 30 + [1.0, 1.0])
    # |sum| >= 2 of 62 signs: 1 − C(62, 31)/2^62
    assert drawn == pytest.approx(1 - 0.1009, abs=0.005)


def test_its_level_holds_for_lopsided_pairs():
    """P(p ≤ 0.05) over all sign patterns of any |d| is at most 0.05: that is what exact means."""
    for size in ([1, 2, 3, 4, 5, 60], [1, 1, 1, 9, 9, 9, 9]):
        patterns = [np.array(signs) * size for signs in product((1, -1), repeat=len(size))]
        assert np.mean([sign_flip_p(d) <= 0.05 for d in patterns]) <= 0.05


def test_holm_by_hand():
    # ascending 0.01, 0.03, 0.04: 3·0.01, 2·0.03, max(0.06, 0.04)
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
