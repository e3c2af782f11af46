"""The contenders do the same work: same model, same batch, and all of them learn."""

import pytest
import torch

from robustmd.backbones.alexnet import AlexNet
from robustmd.bench import contenders, naive, workload
from robustmd.bench.throughput import measuring, training_flop
from robustmd.bench.updates import update_microseconds

CPU = torch.device("cpu")
SMALL = workload.Workload("small", AlexNet(width=0.05), 32, 20)


@pytest.fixture
def learners(monkeypatch: pytest.MonkeyPatch) -> list:
    """Every learner that a contender builds."""
    built = []
    for module in (contenders, naive):
        real = module.build_learner

        def keep(*args, real=real):
            built.append(real(*args))
            return built[-1]

        monkeypatch.setattr(module, "build_learner", keep)
    return built


@pytest.mark.parametrize("name", ["bare", "even", "opt", "naive"])
def test_an_iteration_changes_the_same_model(name: str, learners: list) -> None:
    domains = workload.random_domains(2, 32, 60)
    steps = {
        "bare": lambda: contenders.bare(SMALL, domains, CPU, "fp32"),
        "even": lambda: contenders.ours(SMALL, domains, CPU, "even", "fp32"),
        "opt": lambda: contenders.ours(SMALL, domains, CPU, "opt", "fp32"),
        "naive": lambda: naive.naive(SMALL, domains, CPU),
    }
    step = steps[name]()
    (learner,) = learners
    assert learner.weights_hash() == _initial_hash()
    before = [p.detach().clone() for p in learner.model.parameters()]
    for _ in range(12):
        step()
    moved = [not torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True)]
    assert all(moved)
    if name in ("even", "opt"):
        assert learner.iteration == 12
    if name == "opt":
        assert int(learner.adversary.steps) == 12


def _initial_hash() -> str:
    from robustmd.training.learner import build_learner

    domains = workload.random_domains(2, 32, 60)
    return build_learner(SMALL.config("even"), domains, 2, CPU).weights_hash()


def test_naive_weights_are_those_of_mixture_opt() -> None:
    """Both take p_{t+1} = P(p_t + ĥᵗ/(λt)): the naive loop is slow, not wrong."""
    from robustmd.adversary import L2, ProjectedAscent, project_simplex

    losses = torch.tensor([1.0, 1.2])
    ours = ProjectedAscent(2, L2(), naive.LAM, c=0.0)
    p = torch.tensor([0.5, 0.5])
    for t in (1, 2, 3):
        ours.update(losses)
        p = project_simplex(p + (losses - naive.LAM * (p - 0.5)) / (naive.LAM * t))
        torch.testing.assert_close(ours.weights, p)


def test_measuring_counts_every_image() -> None:
    found = measuring(SMALL, CPU, "fp32", 300, 3)
    assert found.images_per_second > 0
    assert found.ratio.low <= found.ratio.median <= found.ratio.high


def test_flop_of_a_known_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear layer: 2·n·in·out forward, as much again for its weights; its input needs none."""
    from robustmd.bench import throughput

    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    monkeypatch.setattr(
        throughput, "build_learner", lambda *args: type("Learner", (), {"model": model})
    )
    assert training_flop(SMALL, CPU) == 2 * (2 * SMALL.batch_size * 3072 * 10)


def test_every_rule_is_timed_at_every_size() -> None:
    found = update_microseconds(CPU, rounds=1, burst=1)
    assert set(found) == {"opt", "ot", "kl", "minimax", "best_response", "oracle"}
    assert all(set(by_size) == {2, 10, 1000} for by_size in found.values())
    assert all(0 < us < 1e7 for by_size in found.values() for us in by_size.values())
