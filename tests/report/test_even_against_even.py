"""The A/A check: even against even, over many ways of splitting its seeds, is no news; nor is it in
whole studies of 18 methods, as many as the fair protocol compares, that are all even.

The real runs are even's 20 of each family of the demo, in outputs/published.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

from robustmd.registry import METRICS
from robustmd.report.numbers import Rule, studies
from robustmd.report.statistics import LEVEL, difference, margin, with_verdicts
from robustmd.runs.records import read_records

ACCURACY, LOSS = METRICS["accuracy"], METRICS["loss"]
SPLITS = 3000
ONE_IN_FIFTY = 0.02 + 2 * (0.02 * 0.98 / SPLITS) ** 0.5  # 2 % and twice its standard error
CALLED = ("better", "worse")
METHODS = 18
RUNS = Path(__file__).parents[2] / "outputs" / "published" / "demo_20_seeds"


@cache
def real(data):
    """Of even's runs: worst test accuracy, worst training loss, and the accuracy's resolution."""
    found, _ = studies(read_records(RUNS), Rule(), "std")
    (study,) = (one for one in found if one.data == data)
    (row,) = study.baseline_rows("even").index
    both = ("worst", "test", "accuracy"), ("worst", "train", "loss")
    accuracy, loss = (study.values[name][row].to_numpy() for name in both)
    assert len(accuracy) == 20
    return accuracy, loss, study.resolution(both[0], [study.rows.loc[row, "run"]])


def line(pairs, reference, metric, step=0.0):
    within = margin(reference, percent=metric is ACCURACY)
    better = {"margin": within, "better": metric.better, "resolution": step}
    return {**difference(pairs, step), **better}


def called(values, n, metric, step=0.0):
    """The share of random pairings of n against n runs that the rule calls better or worse, where
    Holm asks for nothing more, as where the other quantities are sure."""
    random = np.random.default_rng(0)
    lines = []
    for _ in range(SPLITS):
        drawn = random.permutation(values)[: 2 * n]
        lines.append(line(drawn[:n] - drawn[n:], drawn[n:].mean(), metric, step))
    found = pd.DataFrame(lines)
    is_sure = (found["p_t"] <= LEVEL / 3) & ~(found["p_exact"] > LEVEL)
    ends = found[["ci95_low", "ci95_high"]].abs().max(axis=1)
    return float((is_sure & ~(ends <= found["margin"])).mean())


@pytest.mark.parametrize("n", [2, 3, 5, 6, 8, 10])
@pytest.mark.parametrize("data", ["digits_typed", "digits_rotated"])
def test_of_real_runs_at_most_one_in_fifty_is_called(data, n):
    accuracy, loss, step = real(data)
    assert called(accuracy, n, ACCURACY, step) <= ONE_IN_FIFTY
    assert called(loss, n, LOSS) <= ONE_IN_FIFTY


@pytest.mark.parametrize("n", [3, 4, 5, 6, 10])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_of_accuracies_on_ten_images_at_most_one_in_fifty_is_called(share, n):
    values = 10.0 * np.random.default_rng(1).binomial(10, share, 2000)
    assert called(values, n, ACCURACY, step=10.0) <= ONE_IN_FIFTY


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("kind", ["normal", "two clusters", "heavy tails"])
def test_of_values_of_any_shape_at_most_one_in_twenty_is_called(kind, n):
    random = np.random.default_rng(1)
    values = {
        "normal": random.normal(90.0, 2.0, 2000),
        "two clusters": random.choice([80.0, 90.0], 2000) + random.normal(0, 0.5, 2000),
        "heavy tails": 90.0 + random.standard_t(2, 2000),
    }[kind]
    assert called(values, n, ACCURACY) <= 0.05


def of_real_runs(data, random, shape):
    """The worst accuracy, the worst loss of the same run, and the price, as finely measured."""
    accuracy, loss, step = real(data)
    run, other = random.integers(0, len(loss), (2, *shape))
    return [
        (accuracy[run], ACCURACY, step),
        (loss[run], LOSS, 0.0),
        (accuracy[other], ACCURACY, step),
    ]


def of_the_demo(random, shape):
    return of_real_runs("digits_typed", random, shape)


def of_six_angles(random, shape):
    return of_real_runs("digits_rotated", random, shape)


def of_ten_images(random, shape):
    """The worst of three domains of ten images, a loss, and one of the domains."""
    domains = 10.0 * random.binomial(10, 0.7, (3, *shape))
    loss = random.normal(1.0, 0.1, shape)
    return [(domains.min(0), ACCURACY, 10.0), (loss, LOSS, 0.0), (domains[0], ACCURACY, 10.0)]


def studies_with_a_word(draw, n, studies):
    """The share of studies, 18 methods against even in three quantities on n seeds, all of them
    drawn alike, where any of the 54 words is better or worse."""
    quantities = draw(np.random.default_rng(0), (studies, METHODS + 1, n))
    paired = [values[:, 1:] - values[:, :1] for values, *_ in quantities]
    steps = [step for *_, step in quantities]
    # Holm calls none where no p is below 0.05/54: only the other studies are looked at
    smallest = np.min([t_test(d, step).min(1) for d, step in zip(paired, steps, strict=True)], 0)
    count = 0
    for study in np.flatnonzero(smallest <= 1.01 * LEVEL / (METHODS * len(quantities))):
        found = [
            line(row, values[study, 0].mean(), metric, step)
            for (values, metric, step), d in zip(quantities, paired, strict=True)
            for row in d[study]
        ]
        count += with_verdicts(pd.DataFrame(found))["verdict"].isin(CALLED).any()
    return count / studies


def t_test(pairs, step):
    n = pairs.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.maximum(pairs.std(-1, ddof=1), step)
        t = np.abs(pairs.mean(-1)) * np.sqrt(n) / spread
    return 2 * special.stdtr(n - 1, -np.nan_to_num(t, posinf=1e9))


@pytest.mark.parametrize("draw", [of_the_demo, of_six_angles, of_ten_images])
@pytest.mark.parametrize("n", [5, 8])
def test_in_one_of_twenty_studies_at_most_is_any_method_called(draw, n):
    assert studies_with_a_word(draw, n, 1000) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("draw", [of_the_demo, of_six_angles, of_ten_images])
@pytest.mark.parametrize("n", [3, 4, 6, 10])
def test_in_one_of_twenty_studies_at_most_is_any_method_called_with_few_seeds_and_many(draw, n):
    assert studies_with_a_word(draw, n, 20_000) <= 0.05


def test_a_real_difference_is_called():
    """The check can fail: four points more are seen, also among 54 comparisons."""
    random = np.random.default_rng(0)
    words = []
    for _ in range(200):
        even, other = random.normal(90.0, 1.0, (2, 8))
        one = line(other + 4.0 - even, even.mean(), ACCURACY)
        table = pd.DataFrame([one, *[{**one, "p_t": 1.0}] * 53])
        words.append(with_verdicts(table)["verdict"][0])
    assert words.count("better") > 150
