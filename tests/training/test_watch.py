"""The warning that weights have left all but one domain, and its advice."""

import json
from typing import Any

import pytest
import torch
from tiny import summary

from robustmd.adversary import L2, ExcessAscent, Fixed, MirrorAscent, ProjectedAscent
from robustmd.training.history import Diverged, History, Row, WeightsWatch


def watch(adversary: Any = None, iterations: int = 100) -> WeightsWatch:
    rule = adversary or ProjectedAscent(2, L2(), lam=0.01, total_steps=iterations)
    return WeightsWatch(rule, ("a", "b"), iterations)


def see(watched: WeightsWatch, weights: list[tuple[float, float]]) -> None:
    for t, p in enumerate(weights, start=1):
        watched.see(Row(t, p, (0.2, 1.27)))


def test_a_long_stretch_on_one_domain_is_reported_with_the_lambda_that_helps() -> None:
    watched = watch()
    see(watched, [(0.0, 1.0)] * 9)
    assert watched.warning is None
    see(watched, [(0.0, 1.0)])
    assert watched.warning is not None
    assert "nearly all weight on b for 10 iterations" in watched.warning
    # interior iff λ > max_k (f̄ − f_k)/q_k = (0.735 − 0.2)/0.5 = 1.07
    assert "method.lam=1.1 keeps every domain in play" in watched.warning


def test_the_lambda_for_kl_is_the_smallest_that_spreads_the_weights_enough() -> None:
    watched = watch(MirrorAscent(2, lam=0.01, total_steps=100))
    see(watched, [(0.0, 1.0)] * 10)
    assert watched.warning is not None
    lam = float(watched.warning.partition("method.lam=")[2].split()[0])
    odds = torch.tensor([0.2, 1.27]).double().mul(2 / lam).softmax(0)
    assert float(torch.special.entr(odds).sum().exp()) >= 1.05
    odds = torch.tensor([0.2, 1.27]).double().mul(2 / (0.9 * lam)).softmax(0)
    assert float(torch.special.entr(odds).sum().exp()) < 1.06


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


def test_a_stretch_goes_on_across_a_checkpoint() -> None:
    first, second = watch(), watch()
    see(first, [(0.0, 1.0)] * 6)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    see(second, [(0.0, 1.0)] * 4)
    assert second.warning is not None
    assert "10 iterations" in second.warning


def test_a_single_domain_has_nothing_to_leave() -> None:
    watched = WeightsWatch(Fixed(1), ("a",), 10)
    for t in range(1, 10):
        watched.see(Row(t, (1.0,), (0.3,)))
    assert watched.warning is None


def test_a_run_says_it_in_its_log_and_summary(train: Any) -> None:
    outcome = train("method=opt", "method.lam=1e-6", "method.c=0")
    assert "nearly all weight on" in (outcome.directory / "train.log").read_text()
    (warning,) = summary(outcome.directory)["warnings"]
    assert "nearly all weight on" in warning


def test_history_gives_rows_in_order_and_starts_where_told() -> None:
    history = History(("a", "b"), 4, torch.device("cpu"))
    history.start_at(7)
    for t in range(3):
        history.record(torch.tensor([0.25, 0.75]), torch.tensor([1.0 + t, 2.0]))
    rows = history.read()
    assert [row.iteration for row in rows] == [7, 8, 9]
    assert rows[2].batch_losses == (3.0, 2.0)
    assert not history.read()
    for _ in range(4):
        history.record(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 1.0]))
    assert history.full
    assert history.read()[0].iteration == 10


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_the_first_loss_that_is_not_finite_is_named(bad: float) -> None:
    history = History(("a", "b"), 4, torch.device("cpu"))
    p = torch.tensor([0.5, 0.5])
    history.record(p, torch.tensor([1.0, 1.0]))
    history.record(p, torch.tensor([1.0, bad]))
    history.record(p, torch.tensor([bad, bad]))
    with pytest.raises(Diverged, match="loss of b was not finite in iteration 2"):
        history.read()
