"""The A/A check: even against even, over many ways of splitting its seeds, is no news.

`even_runs.csv` holds the worst test accuracy and the worst training loss of 20 real runs: even on
digits_mini with its default settings, 1,000 iterations, seeds 0–19.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from robustmd.report.quantities import ACCURACY, LOSS
from robustmd.report.verdict import difference, margin, sign_flip_p, word

SPLITS = 3000
CALLED = ("better", "worse")


def real(column):
    with (Path(__file__).parent / "even_runs.csv").open(encoding="utf-8", newline="") as stream:
        return np.array([float(row[column]) for row in csv.DictReader(stream)])


def called(values, n, metric, splits=SPLITS):
    """The share of random pairings of n against n runs that the rule calls better or worse."""
    random = np.random.default_rng(0)
    count = 0
    for _ in range(splits):
        drawn = random.permutation(values)[: 2 * n]
        pairs, even = drawn[:n] - drawn[n:], float(drawn[n:].mean())
        found, within = difference(pairs), margin(metric, even)
        said = word(found, sign_flip_p(pairs), within, better=metric.better)
        count += said in CALLED
    return count / splits


@pytest.mark.parametrize("n", [2, 3, 5, 6, 8, 10])
@pytest.mark.parametrize("column", ["worst_test_accuracy", "worst_train_loss"])
def test_of_real_runs_at_most_one_in_twenty_is_called(column, n):
    assert called(real(column), n, LOSS if column.endswith("loss") else ACCURACY) <= 0.05


@pytest.mark.parametrize("n", [2, 3, 5, 6, 10])
@pytest.mark.parametrize("kind", ["normal", "two clusters", "heavy tails"])
def test_of_values_of_any_shape_at_most_one_in_twenty_is_called(kind, n):
    random = np.random.default_rng(1)
    values = {
        "normal": random.normal(90.0, 2.0, 2000),
        "two clusters": random.choice([80.0, 90.0], 2000) + random.normal(0, 0.5, 2000),
        "heavy tails": 90.0 + random.standard_t(2, 2000),
    }[kind]
    assert called(values, n, ACCURACY) <= 0.05


def test_a_real_difference_is_called():
    """The check can fail: two points more for the first half are seen."""
    random = np.random.default_rng(0)
    words = []
    for _ in range(200):
        even, other = random.normal(90.0, 1.0, (2, 8))
        pairs = other + 3.0 - even
        words.append(word(difference(pairs), sign_flip_p(pairs), 0.5, better="larger"))
    assert words.count("better") > 180
