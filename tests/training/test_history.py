"""The log of iterations, their seconds, and the warning that p stays on one domain."""

import json
import math
import time
from typing import Any

import pytest
import torch
from tiny import summary

from robustmd.adversary import L2, ExcessAscent, Fixed, MirrorAscent, ProjectedAscent
from robustmd.training.history import Clock, Diverged, Row, WeightsWatch, rows_of


def watch(adversary: Any = None, iterations: int = 100) -> WeightsWatch:
    rule = adversary or ProjectedAscent(2, L2(), lam=0.01, total_steps=iterations)
    return WeightsWatch(rule, ("a", "b"), iterations)


def see(watched: WeightsWatch, weights: list[tuple[float, float]]) -> None:
    for t, p in enumerate(weights, start=1):
        watched.see(Row(t, list(p), [0.2, 1.27]))


def test_a_long_stretch_on_one_domain_is_reported_with_the_lambda_that_helps() -> None:
    watched = watch()
    see(watched, [(0.0, 1.0)] * 9)
    assert watched.warning is None
    see(watched, [(0.0, 1.0)])
    assert "nearly all weight on b for 10 iterations" in str(watched.warning)
    # interior iff λ > max_k (f̄ − f_k)/q_k = (0.735 − 0.2)/0.5 = 1.07
    assert "method.lam=1.1 keeps every domain in play" in str(watched.warning)


def test_the_lambda_for_kl_is_the_smallest_that_spreads_the_weights_enough() -> None:
    watched = watch(MirrorAscent(2, lam=0.01, total_steps=100))
    see(watched, [(0.0, 1.0)] * 10)
    lam = float(str(watched.warning).partition("method.lam=")[2].split()[0])
    for factor, is_spread in ((1.0, True), (0.9, False)):
        odds = torch.tensor([0.2, 1.27]).double().mul(2 / (factor * lam)).softmax(0)
        effective = float(torch.special.entr(odds).sum().exp())
        assert effective >= 1.05 if is_spread else effective < 1.06


def test_the_lambda_for_the_excess_is_of_the_excess() -> None:
    watched = watch(ExcessAscent(2, L2(), 0.01, reference=[0.1, 0.12], total_steps=100))
    see(watched, [(0.0, 1.0)] * 10)
    # f − f* = (0.1, 1.15): λ > (0.625 − 0.1)/0.5 = 1.05
    assert "method.lam=1.1 keeps every domain in play" in str(watched.warning)


def test_weights_that_jump_between_domains_leave_none_out() -> None:
    watched = watch()
    see(watched, [(0.0, 1.0), (1.0, 0.0)] * 20)
    assert watched.warning is None
    see(watched, [(1.0, 0.0)] * 9)
    assert "nearly all weight on a for 10 iterations" in str(watched.warning)
    alone = WeightsWatch(Fixed(1), ("a",), 10)
    for t in range(1, 10):
        alone.see(Row(t, [1.0], [0.3]))
    assert alone.warning is None  # a single domain has nothing to leave


def test_a_stretch_goes_on_across_a_checkpoint() -> None:
    first, second = watch(), watch()
    see(first, [(0.0, 1.0)] * 6)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    see(second, [(0.0, 1.0)] * 4)
    assert "10 iterations" in str(second.warning)


def test_a_run_says_it_in_its_log_and_summary(train: Any) -> None:
    outcome = train("method=opt", "method.lam=1e-6", "method.c=0")
    assert "nearly all weight on" in (outcome.directory / "train.log").read_text()
    (warning,) = summary(outcome.directory)["warnings"]
    assert "nearly all weight on" in warning


def test_rows_have_their_iterations_and_who_was_not_drawn() -> None:
    log = torch.tensor([[[0.25, 0.75], [1.0, 2.0]], [[0.5, 0.5], [math.nan, 3.0]]])
    first, second = rows_of(log, 7, ("a", "b"))
    assert first == Row(7, [0.25, 0.75], [1.0, 2.0])
    assert (second.iteration, second.losses[1]) == (8, 3.0)
    assert math.isnan(second.losses[0])


def test_the_first_loss_that_is_not_finite_is_named() -> None:
    log = torch.ones(3, 2, 2)
    log[1, 1, 1] = log[2, 1, 0] = math.inf
    with pytest.raises(Diverged, match="loss of b was not finite in iteration 2"):
        rows_of(log, 1, ("a", "b"))


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
