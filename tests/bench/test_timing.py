"""Paired ratios: hand-computed values, what pairing is for, and who gets a turn when."""

import numpy as np
import pytest
import torch

from robustmd.bench.timing import interleaved, paired_ratio

CPU = torch.device("cpu")


def test_ratio_of_hand_computed_pairs() -> None:
    ratio = paired_ratio([2.0, 6.0, 12.0], [1.0, 2.0, 3.0])  # 2, 3, 4
    assert ratio == {"median": 3.0, "low": 2.0, "high": 4.0, "pairs": 3}


def test_interval_is_that_of_the_binomial_ranks() -> None:
    """n = 20: ranks 6 and 15 of the sorted ratios hold the median with 95.9 % (sign test)."""
    ratios = np.arange(1.0, 21.0)
    ratio = paired_ratio(ratios, np.ones(20))
    assert ratio == {"median": 10.5, "low": 6.0, "high": 15.0, "pairs": 20}


def test_interval_covers_the_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        ratio = paired_ratio(random.exponential(size=25), np.ones(25))
        covered += ratio["low"] <= np.log(2) <= ratio["high"]
    assert 930 <= covered <= 985


def test_what_slows_the_machine_cancels() -> None:
    random = np.random.default_rng(0)
    slow = random.uniform(1.0, 5.0, size=40)  # the machine's mood in each round
    ratio = paired_ratio(1.02 * slow, slow)
    assert ratio["median"] == pytest.approx(1.02)
    assert ratio["high"] == pytest.approx(1.02)


def test_contenders_take_turns() -> None:
    order: list[str] = []
    steps = {name: lambda name=name: order.append(name) for name in "abc"}
    seconds = interleaved(steps, 3, CPU, burst=2, warm_up=1)
    assert "".join(order) == "abc" + "aabbcc" + "bbccaa" + "ccaabb"
    assert all(len(values) == 3 and (values > 0).all() for values in seconds.values())
