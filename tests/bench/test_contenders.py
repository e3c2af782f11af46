"""The contenders do the same work: same model, same batch, and all of them learn."""

import pytest
import torch

from robustmd.adversary import L2, ProjectedAscent, project_simplex
from robustmd.backbones.alexnet import AlexNet
from robustmd.bench import contenders, study
from robustmd.bench.contenders import NAIVE_LAM, Workload, random_domains
from robustmd.bench.study import UPDATES, training_flop, update_microseconds
from robustmd.bench.timing import startup_seconds
from robustmd.training.learner import build_learner

CPU = torch.device("cpu")
SMALL = Workload("small", AlexNet(width=0.05), 32, 20)
STEPS = {
    "bare": lambda domains: contenders.bare(SMALL, domains, CPU, "fp32"),
    "even": lambda domains: contenders.ours(SMALL, domains, CPU, "even", "fp32"),
    "opt": lambda domains: contenders.ours(SMALL, domains, CPU, "opt", "fp32"),
    "naive": lambda domains: contenders.naive(SMALL, domains, CPU),
}


@pytest.mark.parametrize("name", STEPS)
def test_an_iteration_changes_the_same_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    domains = random_domains(2, 32, 60)
    built = [build_learner(SMALL.config("even"), domains, 2, CPU)]
    initial = built[0].weights_hash()

    def keep(*args):
        built.append(build_learner(*args))
        return built[-1]

    monkeypatch.setattr(contenders, "build_learner", keep)
    step = STEPS[name](domains)
    _, learner = built
    assert learner.weights_hash() == initial
    before = [p.detach().clone() for p in learner.model.parameters()]
    for _ in range(12):
        step()
    moved = [not torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True)]
    assert all(moved)
    if name in ("even", "opt"):
        assert learner.iteration == 12
    if name == "opt":
        assert int(learner.adversary.steps) == 12


def test_naive_weights_are_those_of_mixture_opt() -> None:
    """Both take p_{t+1} = P(p_t + ĥᵗ/(λt)): the naive loop is slow, not wrong."""
    losses = torch.tensor([1.0, 1.2])
    ours = ProjectedAscent(2, L2(), NAIVE_LAM, c=0.0)
    p = torch.tensor([0.5, 0.5])
    for t in (1, 2, 3):
        ours.update(losses)
        p = project_simplex(p + (losses - NAIVE_LAM * (p - 0.5)) / (NAIVE_LAM * t))
        torch.testing.assert_close(ours.weights, p)


def test_flop_of_a_known_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear layer: 2·n·in·out forward, as much again for its weights; its input needs none."""
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    learner = type("Learner", (), {"model": model})
    monkeypatch.setattr(study, "build_learner", lambda *args: learner)
    assert training_flop(SMALL, CPU) == 2 * (2 * SMALL.batch_size * 3072 * 10)


def test_every_rule_is_timed_at_every_size() -> None:
    found = update_microseconds(CPU, rounds=1, burst=1)
    assert set(found) == set(UPDATES)
    assert all(set(by_size) == {2, 10, 1000} for by_size in found.values())
    assert all(0 < us < 1e7 for by_size in found.values() for us in by_size.values())


@pytest.mark.slow
def test_the_first_measurement_comes_after_the_help() -> None:
    seconds = startup_seconds(tries=1)
    assert 0 < seconds["help"] < seconds["first_warm"]
