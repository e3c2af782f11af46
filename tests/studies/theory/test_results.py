"""The slope's estimate and interval on data whose slope is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustmd.studies.theory.results import log_slope, measured_slope

T = [100, 316, 1000, 3162, 10000]


@given(st.floats(-2, 1), st.floats(1e-6, 1e6))
def test_a_power_law_gives_its_exponent(exponent, factor):
    values = factor * np.array(T)[:, None] ** exponent * np.ones((1, 5))
    slope = measured_slope(T, values)
    assert slope.value == pytest.approx(exponent, abs=1e-9)
    assert slope.low == pytest.approx(slope.high, abs=1e-7)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        noise = np.exp(0.2 * rng.standard_normal((5, 10)) - 0.02)  # mean 1
        slope = measured_slope(T, np.array(T)[:, None] ** -0.5 * noise)
        inside += slope.low <= -0.5 <= slope.high
    assert 0.91 <= inside / 400 <= 0.99


def test_for_two_seeds_the_interval_is_worked_by_hand():
    # T = 1, e: the slope is log of the ratio. Seeds give ratios e^-1 and e^-2 from 1.
    values = np.array([[1.0, 1.0], [np.exp(-1), np.exp(-2)]])
    slope = measured_slope([1, np.e], values)
    assert slope.value == pytest.approx(np.log((np.exp(-1) + np.exp(-2)) / 2))
    half = 12.7062047 * np.sqrt(0.5 * (0.25 + 0.25))  # t_1; left-out slopes −2 and −1
    assert slope.high - slope.value == pytest.approx(half)


def test_a_mean_that_is_not_positive_has_no_slope():
    assert np.isnan(log_slope([1, 2], [1.0, 0.0]))
    assert np.isnan(measured_slope([1, 2], np.array([[1.0, 1.0], [-1.0, 0.5]])).value)
