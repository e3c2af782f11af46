"""The rule behind better, worse, equivalent and undecided, and the intervals it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustmd.report.numbers import margin
from robustmd.report.quantities import ACCURACY, LOSS
from robustmd.report.verdict import Difference, difference, unpaired_difference, word


def test_t_interval_by_hand():
    # d = 1, 2, 3: mean 2, s = 1, t_{0.975, 2} = 4.302653, half width 4.302653/sqrt(3) = 2.484138
    got = difference([1.0, 2.0, 3.0])
    assert got.mean == 2.0
    assert got.interval == pytest.approx((2 - 2.4841377, 2 + 2.4841377), abs=1e-6)


def test_a_word_wants_more_than_its_95_percent_interval():
    # three quantities: t_{1 − 0.05/6, 2} = 7.6488; 7.6488/sqrt(3) = 4.4161
    got = difference([1.0, 2.0, 3.0])
    assert got.sure == pytest.approx((2 - 4.4161, 2 + 4.4161), abs=1e-3)
    close = Difference(2.0, (0.1, 3.9), 3, (-0.5, 4.5))
    assert word(close, None, 0.5, better="larger") == "undecided"


def test_welch_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    a, b = [1.0, 2.5, 3.0, 0.5], [4.0, 4.5, 7.0]
    expected = stats.ttest_ind(b, a, equal_var=False).confidence_interval()
    assert unpaired_difference(a, b).interval == pytest.approx(tuple(expected))


def test_one_value_has_no_interval_and_none_is_refused():
    assert difference([1.0]).interval is None
    assert unpaired_difference([1.0], [2.0, 3.0]).interval is None
    assert unpaired_difference([1.0, 1.0], [2.0, 2.0]).interval == (1.0, 1.0)
    for refused in (lambda: difference([]), lambda: unpaired_difference([], [1.0])):
        with pytest.raises(ValueError):
            refused()


def test_two_pairs_decide_nothing_three_do():
    assert word(difference([5.0, 5.0]), None, 0.5, better="larger") == "undecided"
    assert word(difference([5.0, 5.0, 5.0]), None, 0.5, better="larger") == "better"


@pytest.mark.parametrize(
    ("interval", "better", "p", "expected"),
    [
        ((-2.0, -0.6), "smaller", None, "better"),
        ((-2.0, -0.1), "smaller", None, "better"),  # it reaches beyond −0.5
        ((-2.0, -0.1), "larger", None, "worse"),
        ((0.1, 2.0), "smaller", None, "worse"),
        ((0.1, 2.0), "larger", None, "better"),
        ((0.1, 2.0), "larger", 0.04, "better"),
        ((0.1, 2.0), "larger", 0.06, "undecided"),  # the exact test does not agree
        ((-0.1, 2.1), "larger", 0.01, "undecided"),
        ((0.0, 2.0), "larger", None, "undecided"),
        ((-0.5, 0.5), "larger", None, "equivalent"),
        ((0.1, 0.4), "larger", 0.01, "equivalent"),  # a difference that is sure, and too small
        ((0.0, 0.0), "larger", 1.0, "equivalent"),
        ((-0.6, 0.4), "larger", None, "undecided"),
        (None, "larger", None, "undecided"),
    ],
)
def test_the_word(interval, better, p, expected):
    mean = 0.0 if interval is None else sum(interval) / 2
    found = Difference(mean, interval, 5)
    assert word(found, p, 0.5, better=better) == expected


def test_margins_are_half_a_point_and_five_percent_of_the_loss():
    assert margin(ACCURACY, 91.3) == 0.5
    assert margin(LOSS, 0.2) == pytest.approx(0.01)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12), st.floats(0, 10))
def test_swapping_the_two_turns_the_word_round(values, within):
    turned = {"better": "worse", "worse": "better"}
    one = word(difference(values), None, within, better="smaller")
    other = word(difference([-v for v in values]), None, within, better="smaller")
    assert other == turned.get(one, one)
