"""More domains than a batch has examples: each iteration draws some of them."""

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import composed, many, rows, sized, summary, synthetic_domains
from torch import nn

from robustmd.adversary import L2, Adversary, CVaR, Fixed, ProjectedAscent, Tilted, TopK
from robustmd.data_sets.noise_and_rotation import noise_copies
from robustmd.training.batches import BLOCK, BatchStream
from robustmd.training.fast_iteration import CapturedIteration, why_not
from robustmd.training.history import Clock, Diverged, History
from robustmd.training.learner import Learner, build_learner
from robustmd.training.loop import Parts, Steps, iterate, losses_weighed, of_all
from robustmd.training.pool import TrainingPool, resident_splits

CPU = torch.device("cpu")


def test_domains_are_drawn_uniformly_without_replacement() -> None:
    batches = BatchStream(sized(**dict.fromkeys("abcdefg", 5)), 6, seed=1, domains_per_batch=3)
    assert batches.samples_domains
    assert batches.effective_batch == 6
    draws = [batches.draw(t) for t in range(700)]
    assert all(len(set(d.domains.tolist())) == 3 and d.positions.shape == (3, 2) for d in draws)
    sets = [tuple(d.domains.tolist()) for d in draws]
    assert all(list(s) == sorted(s) for s in sets)
    counts = np.array([sets.count(s) for s in itertools.combinations(range(7), 3)])
    expected = 700 / 35
    assert ((counts - expected) ** 2 / expected).sum() < 76.5  # chi-squared, 34 df, p = 4e-5


def test_a_drawn_domain_sees_what_it_would_see_if_all_were_there() -> None:
    sizes = sized(a=50, b=60, c=70)
    few, all_there = BatchStream(sizes, 8, 2, domains_per_batch=2), BatchStream(sizes, 12, 2)
    for t in (0, 5, BLOCK + 1):
        draw, every = few.draw(t), all_there.draw(t)
        assert every.domains is None
        assert draw.positions.equal(every.positions[draw.domains])


@pytest.mark.parametrize("drawn", [1, 2, 3])
def test_the_objective_is_unbiased(drawn: int) -> None:
    """Over all sets of M of 4 domains, the mean step is that on p·f̂."""
    start = torch.randn(4, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([0.3, -1.0, 2.0, 0.7])
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4])

    def step(domains: torch.Tensor | None) -> torch.Tensor:
        model = nn.Linear(4, 1, bias=False)
        model.weight.data[:] = start
        steps = _steps_of(model, Fixed(4, prior=weights.tolist()))
        losses = (model.weight[0] - targets).square()
        steps.losses, steps.domains = losses if domains is None else losses[domains], domains
        steps.descend()
        return start - model.weight.data[0]

    sets = [torch.tensor(s) for s in itertools.combinations(range(4), drawn)]
    mean = torch.stack([step(s) for s in sets]).mean(0)
    torch.testing.assert_close(mean, step(None))


@pytest.mark.parametrize("rule", [TopK(4, 1), CVaR(4, 0.5), Tilted(4, 1.0)])
def test_weights_that_take_part_in_the_draw_are_not_answered_to_it(rule: Adversary) -> None:
    """A rule without memory would put its weight on those whose old losses are large: not drawn."""
    learner = SimpleNamespace(adversary=rule)
    few, every = (BatchStream(sized(a=9, b=9, c=9, d=9), 8, 0, domains_per_batch=m) for m in (2, 4))
    assert losses_weighed(SimpleNamespace(learner=learner, batches=every)) == "current"  # type: ignore[arg-type]
    assert losses_weighed(SimpleNamespace(learner=learner, batches=few)) == "next"  # type: ignore[arg-type]


def _steps_of(model: nn.Module, adversary: Any) -> Steps:
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.1), adversary)
    return Steps(SimpleNamespace(learner=learner))  # type: ignore[arg-type]


def test_the_adversary_answers_the_last_losses_of_who_is_absent() -> None:
    ours, theirs = (ProjectedAscent(3, L2(), lam=1.0, total_steps=9) for _ in range(2))
    steps = _steps_of(nn.Linear(1, 1), ours)
    for seen, losses, every in (
        ([0, 2], [3.0, 1.0], [3.0, 2.0, 1.0]),  # never seen: the mean of the others
        ([1], [5.0], [3.0, 5.0, 1.0]),
    ):
        steps.whole = of_all(steps.parts.learner, torch.tensor(losses), torch.tensor(seen))
        steps.answer()
        theirs.update(torch.tensor(every))
        assert ours.weights.equal(theirs.weights)


def test_the_history_knows_who_was_absent_and_who_diverged() -> None:
    history = History(("a", "b"), 4, CPU)
    p, present = torch.tensor([0.5, 0.5]), torch.tensor([True, False])
    history.record(p, torch.tensor([1.0, 0.0]), present)
    history.record(p, torch.tensor([0.0, 2.0]), ~present)
    first, second = history.read()
    assert first.batch_losses[0] == 1.0
    assert math.isnan(first.batch_losses[1])
    assert math.isnan(second.batch_losses[0])
    history.record(p, torch.tensor([math.inf, 2.0]), ~present)  # not in the batch: no matter
    history.record(p, torch.tensor([math.nan, 2.0]), present)
    with pytest.raises(Diverged, match="loss of a was not finite in iteration 4"):
        history.read()


@pytest.mark.parametrize("method", ["opt", "term", "vrex", "groupdro"])
def test_a_captured_iteration_draws_as_well(method: str) -> None:
    """The images lie in one array: a replay reads whichever domains the draw names."""
    recorded = []
    for capture in (False, True):
        config = composed(f"method={method}", "backbone.width=0.05", "training.iterations=40")
        domains = noise_copies(synthetic_domains(), "a", [0, 1, 2, 3, 4, 5], "noisy")
        learner = build_learner(config, domains, 6, CPU, [12] * 6)
        batches = BatchStream({d.name: d.train for d in domains}, 8, 0, 2)
        pool = TrainingPool([*resident_splits(domains, CPU)["train"].values()])
        assert len(pool.shelves) == 1
        history, clock = History(domains.names, 7, CPU), Clock(CPU)
        parts = Parts(learner, batches, pool, history, clock)
        iteration = CapturedIteration(parts, capture=lambda p: p) if capture else iterate
        for _ in range(7):
            iteration(parts)
        recorded.append(str(history.read()))  # as text, for NaN = NaN
    assert recorded[0] == recorded[1]


def test_no_graph_where_the_draw_decides_which_arrays_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = sized(**dict.fromkeys("abcdef", 12))
    few, every = (BatchStream(sizes, 12, 0, domains_per_batch=m) for m in (2, 6))
    apart = TrainingPool([*resident_splits(many(6), CPU)["train"].values()])
    copies = noise_copies(synthetic_domains(), "a", [0, 1, 2, 3, 4, 5], "noisy")
    together = TrainingPool([*resident_splits(copies, CPU)["train"].values()])
    for pool in (apart, together):  # as if the images lay on a GPU
        monkeypatch.setattr(pool, "device", torch.device("cuda"))
    assert "do not fit on the device" in str(why_not(every, apart))
    monkeypatch.setattr(TrainingPool, "resident", True)
    assert "which of the 6 arrays of images are read" in str(why_not(few, apart))
    assert why_not(every, apart) is None
    assert why_not(few, together) is None


@pytest.mark.parametrize("method", ["even", "opt", "ot", "best_response", "cvar", "minimax"])
def test_more_domains_than_the_batch_has_examples(method: str, train: Callable[..., Any]) -> None:
    outcome = train(f"method={method}", "training.batch_size=20", "logging.every=1", data=many())
    said = summary(outcome.directory)
    assert said["domains_per_batch"] == said["effective_batch"] == 20
    assert "each iteration draws 20 of 30 domains, with 1 of each's examples" in said["notes"]
    assert len(said["final"]["test"]) == 30
    found = rows(outcome.directory, "weights.csv")
    for t in range(12):
        losses = [float(row["batch_loss"]) for row in found[30 * t : 30 * t + 30]]
        assert sum(map(math.isnan, losses)) == 10


@pytest.mark.parametrize("method", ["topk", "cvar", "opt"])
def test_the_weight_in_the_batch_is_one_on_average(method: str, train: Callable[..., Any]) -> None:
    """(K/M) Σ_{k drawn} p_k over iterations: weights.csv has the weights from before the draw."""
    outcome = train(
        f"method={method}",
        "training.domains_per_batch=5",
        "training.iterations=150",
        "evaluation.every=150",
        "logging.every=1",
        "training.learning_rate=0.001",
        data=many(10),
    )
    found = rows(outcome.directory, "weights.csv")
    drawn = [0.0 if row["batch_loss"] == "nan" else 2 * float(row["weight"]) for row in found]
    sums = [sum(drawn[10 * t : 10 * t + 10]) for t in range(150)]
    error = np.std(sums, ddof=1) / math.sqrt(150)
    assert abs(np.mean(sums) - 1) <= 4 * error + 1e-6


def test_a_run_that_draws_domains_goes_on_as_if_nothing_had_happened(
    gone_on: Callable[..., Any],
) -> None:
    gone_on(after=7, data=many())
