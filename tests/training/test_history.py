"""The seconds of a run's parts, and the warning that p stays on one domain."""

import time
from typing import Any

import pytest
import torch
from tiny import summary

from robustmd.adversary import L2, ExcessAscent, Fixed, MirrorAscent, ProjectedAscent
from robustmd.training.history import Clock, WeightsWatch


def watch(rule: Any, *weights: tuple[float, float], iterations: int = 100) -> str:
    """The warning after these weights, with losses 0.2 and 1.27 in each iteration."""
    watched = WeightsWatch(rule, ("a", "b"), iterations)
    for t, p in enumerate(weights, start=1):
        watched.see(t, list(p), [0.2, 1.27])
    return watched.state["warning"]


OPT = ProjectedAscent(2, L2(), lam=0.01, total_steps=100)
ON_A, ON_B = (1.0, 0.0), (0.0, 1.0)


@pytest.mark.parametrize(
    ("rule", "lam"),
    [
        (OPT, 1.1),  # interior iff λ > max_k (f̄ − f_k)/q_k = (0.735 − 0.2)/0.5 = 1.07
        # f − f* = (0.1, 1.15): λ > (0.625 − 0.1)/0.5 = 1.05
        (ExcessAscent(2, L2(), 0.01, reference=[0.1, 0.12], total_steps=100), 1.1),
    ],
)
def test_a_long_stretch_on_one_domain_is_reported_with_the_lambda_that_helps(
    rule: Any, lam: float
) -> None:
    assert watch(rule, *[ON_B] * 9) == ""
    warning = watch(rule, *[ON_B] * 10)
    assert "nearly all weight on b for 10 iterations" in warning
    assert f"method.lam={lam} keeps every domain in play" in warning


def test_the_lambda_for_kl_is_the_smallest_that_spreads_the_weights_enough() -> None:
    warning = watch(MirrorAscent(2, lam=0.01, total_steps=100), *[ON_B] * 10)
    lam = float(warning.partition("method.lam=")[2].split()[0])
    for factor, is_spread in ((1.0, True), (0.9, False)):
        odds = torch.tensor([0.2, 1.27]).double().mul(2 / (factor * lam)).softmax(0)
        effective = float(torch.special.entr(odds).sum().exp())
        assert effective >= 1.05 if is_spread else effective < 1.06


def test_weights_that_jump_between_domains_leave_none_out() -> None:
    assert watch(OPT, *[ON_B, ON_A] * 20) == ""
    assert "nearly all weight on a for 10 iterations" in watch(OPT, *[ON_B] * 5, *[ON_A] * 10)
    alone = WeightsWatch(Fixed(1), ("a",), 10)
    for t in range(1, 10):
        alone.see(t, [1.0], [0.3])
    assert alone.state["warning"] == ""  # a single domain has nothing to leave


def test_a_run_says_it_in_its_log_and_summary_also_across_a_checkpoint(
    train: Any, gone_on: Any
) -> None:
    directory, _ = gone_on("method=opt", "method.lam=1e-6", "method.c=0", after=1)
    assert "nearly all weight on" in (directory / "train.log").read_text()
    (warning,) = summary(directory)["warnings"]
    assert "nearly all weight on" in warning


def test_seconds_go_to_the_part_that_a_mark_ends() -> None:
    clock = Clock(torch.device("cpu"))
    for _ in range(2):
        clock.marks.append([("", 1.0), ("data", 1.5), ("model", 3.5), ("adversary", 3.75)])
    clock.settle()
    clock.settle()
    assert clock.seconds["data"] == 1.0
    assert clock.seconds["model"] == 4.0
    assert clock.training() == 5.5
    clock.replayed, clock.replays = [("", 0.0), ("model", 0.25)], 8
    clock.settle()
    assert clock.seconds["model"] == 6.0
    before = time.perf_counter()
    assert clock.mark() >= before
