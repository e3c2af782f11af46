"""The rule behind better, worse, equivalent and undecided, with the intervals and the exact paired
test that it reads: by hand, by brute force, and against scipy."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from robustmd.report.statistics import difference, holm, margin, sign_flip_p, spread, with_verdicts


def word(found, within=0.5, better="larger", resolution=0.0, others=()):
    """The verdict on this difference in a table with these other p."""
    line = {"margin": within, "better": better, "resolution": resolution, **found}
    return with_verdicts(pd.DataFrame([line, *({**line, "p_t": p} for p in others)]))["verdict"][0]


def test_spreads_by_hand():
    # 80, 82, 90: squares 16 + 4 + 36 = 56; sqrt(56/2) = 5.2915
    s = math.sqrt(28)
    found = [spread(s, 3, kind) for kind in ("std", "sem", "ci95")]
    assert found == pytest.approx([s, s / math.sqrt(3), 4.302653 * s / math.sqrt(3)])


def test_t_intervals_by_hand():
    # d = 1, 2, 3: mean 2, s = 1, t_{0.975, 2} = 4.302653, half width 4.302653/sqrt(3) = 2.484138
    got = difference([1.0, 2.0, 3.0])
    assert got["difference"] == 2.0
    ends = got["ci95_low"], got["ci95_high"]
    assert ends == pytest.approx((2 - 2.4841377, 2 + 2.4841377), abs=1e-6)
    assert math.isnan(difference([1.0])["ci95_low"])


def test_p_is_scipys_and_of_equal_differences_that_of_one_step():
    d = [1.0, 2.5, 3.0, 0.5]
    assert difference(d)["p_t"] == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    # one step more in each of three: t = sqrt(3), P(|t| ≥ sqrt(3)) = 1 − sqrt(3/(2 + 3)) for ν = 2
    assert difference([10.0] * 3, 10.0)["p_t"] == pytest.approx(1 - math.sqrt(3 / 5))
    assert math.isnan(difference([1.0, 2.0])["p_t"])
    assert difference([0.0] * 3)["p_t"] == 1.0


def test_two_pairs_decide_nothing_three_do():
    for count, said in ((2, "undecided"), (3, "better")):
        assert word(difference([5.0] * count)) == said


@pytest.mark.parametrize(
    ("interval", "better", "tests", "expected"),
    [
        ((-2.0, -0.6), "smaller", (0.01, None, ()), "better"),
        ((-2.0, -0.1), "smaller", (0.01, None, ()), "better"),  # it reaches beyond −0.5
        ((-2.0, -0.1), "larger", (0.01, None, ()), "worse"),
        ((0.1, 2.0), "smaller", (0.01, None, ()), "worse"),
        ((0.1, 2.0), "larger", (0.01, 0.04, ()), "better"),
        ((0.1, 2.0), "larger", (0.01, 0.06, ()), "undecided"),  # the exact test does not agree
        ((0.1, 2.0), "larger", (0.01, 0.04, [0.5] * 5), "undecided"),  # one of many comparisons
        ((0.1, 2.0), "larger", (0.02, 0.04, ()), "undecided"),  # one of three quantities
        ((-0.5, 0.5), "larger", (1.0, None, ()), "equivalent"),
        ((0.1, 0.4), "larger", (0.01, 0.01, ()), "equivalent"),  # sure, and too small
        ((-0.6, 0.4), "larger", (0.6, None, ()), "undecided"),
    ],
)
def test_the_rule_of_the_document(interval, better, tests, expected):
    p, p_exact, others = tests
    found = {"ci95_low": interval[0], "ci95_high": interval[1], "difference": sum(interval) / 2}
    found |= {"p_t": p, "p_exact": math.nan if p_exact is None else p_exact}
    assert word(found, better=better, others=others) == expected


def test_what_is_measured_more_coarsely_than_the_margin_is_never_equivalent():
    found = difference([0.0] * 3)
    assert [word(found, resolution=step) for step in (0.0, 0.4, 0.5)] == [
        "equivalent",
        "equivalent",
        "undecided",
    ]


def test_margins_are_half_a_point_and_five_percent_of_the_loss():
    assert margin(91.3, percent=True) == 0.5
    assert margin(0.2, percent=False) == pytest.approx(0.01)


@settings(max_examples=50)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12), st.floats(0, 10))
def test_swapping_the_two_turns_the_word_round(values, within):
    turned = {"better": "worse", "worse": "better"}
    one, other = (
        word(difference(found), within, "smaller") for found in (values, [-v for v in values])
    )
    assert other == turned.get(one, one)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 2, 3, 4, 5, 6], 2 / 64),  # only all plus and all minus reach 21
        ([-1, 2, 3, 4, 5, 6], 4 / 64),  # 19: and those with 1 the other way
        ([1, 1, 1, 1, 1, -1], 14 / 64),  # |sum| 4 or 6: 2 (1 + 6)
        ([0, 0, 0, 0, 0, 0], 1.0),
        ([0.1] * 6 + [0.3], 2 / 128),  # equal sums despite rounding
        ([1.0] * 16, 2 / 2**16),
    ],
)
def test_p_by_hand(differences, p):
    assert sign_flip_p(differences) == p
    assert math.isnan(sign_flip_p(differences[:5]))


@settings(max_examples=50)
@given(st.lists(st.integers(-9, 9).map(lambda i: i / 10), min_size=6, max_size=9))
def test_p_by_brute_force(differences):
    d = np.array(differences)
    sums = np.array([abs(np.dot(signs, d)) for signs in product((1, -1), repeat=len(d))])
    # Sums are whole tenths up to rounding, 9 · 9u · 0.9 < 1e-14: any slack from there to 0.05 does.
    assert sign_flip_p(differences) == float((sums >= abs(d.sum()) - 0.01).mean())


def test_of_many_pairs_sign_patterns_are_drawn():
    # |sum| >= 2 of 62 signs: 1 − C(62, 31)/2^62
    drawn = sign_flip_p([1.0, -1.0] * 30 + [1.0, 1.0])
    assert drawn == pytest.approx(1 - 0.1009, abs=0.005)
    assert 0 < sign_flip_p([1.0] * 30) < 1e-4


def test_the_level_of_p_holds_for_lopsided_pairs():
    """P(p ≤ 0.05) over all sign patterns of any |d| is at most 0.05: that is what exact means."""
    for size in ([1, 2, 3, 4, 5, 60], [1, 1, 1, 9, 9, 9, 9]):
        patterns = [np.array(signs) * size for signs in product((1, -1), repeat=len(size))]
        assert np.mean([sign_flip_p(d) <= 0.05 for d in patterns]) <= 0.05


def test_holm_by_hand():
    # ascending 0.01, 0.03, 0.04: 3·0.01, 2·0.03, max(0.06, 0.04)
    found = holm([0.01, 0.04, math.nan, 0.03])
    assert found.dropna().tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert math.isnan(found[2])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).empty
