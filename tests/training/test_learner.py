"""The model's steps against steps by hand; its averages; and runs with them go on."""

import math
from typing import Any

import pytest
import torch
from tiny import ADAMW, composed, rows, run_under_way, summary
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from robustmd.config.settings import OPTIMIZERS, Training
from robustmd.errors import UserError
from robustmd.runs import checkpoints
from robustmd.training.learner import Average, Learner, build_optimizer, computed, schedule

CPU = torch.device("cpu")


class Model(nn.Module):
    """A body and a head, each with weights and biases."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).tanh())


def learner_of(training: Training, decay: float | None = None) -> Learner:
    """One whose model, optimizer and average are set by hand."""
    learner = Learner.__new__(Learner)
    nn.Module.__init__(learner)
    learner.model, learner.clip_norm = Model(), training.clip_norm
    learner.optimizer = build_optimizer(learner.model, training, CPU, "head")
    learner.rates = [float(group["lr"]) for group in learner.optimizer.param_groups]
    learner.schedule = schedule(training)
    learner.average = Average(learner.model, decay) if decay else None
    return learner


def stepped(learner: Learner, scale: float = 1.0) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """name -> (parameter before a step, its gradient there), once the step was made."""
    named = dict(learner.model.named_parameters())
    before = {name: p.detach().clone() for name, p in named.items()}
    loss = scale * learner.model(torch.ones(5, 3)).square().sum()
    gradients = torch.autograd.grad(loss, list(named.values()), retain_graph=True)
    learner.descend(loss)
    return {name: (before[name], g) for name, g in zip(named, gradients, strict=True)}


def test_adamws_first_step_is_its_closed_form_in_each_group() -> None:
    """W₁ = (1 − ηλ)W₀ − η g/(|g| + ε): of one gradient the means are it and its square."""
    training = Training(
        optimizer="adamw",
        learning_rate=0.01,
        head_learning_rate=0.1,
        weight_decay=0.3,
        decay_all=False,
    )
    learner = learner_of(training)
    for name, (before, g) in stepped(learner).items():
        rate = 0.1 if name.startswith("head") else 0.01
        decay = 0.3 if name.endswith("weight") else 0.0
        expected = before * (1 - rate * decay) - rate * g / (g.abs() + 1e-8)
        torch.testing.assert_close(dict(learner.model.named_parameters())[name].detach(), expected)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_torchs_optimizer_of_that_name(name: str) -> None:
    training = Training(optimizer=name, learning_rate=0.05)
    if OPTIMIZERS[name] == "betas":
        training.betas = [0.7, 0.95]
    ours, theirs = learner_of(training), Model()
    given = {"momentum": {"momentum": 0.9}, "betas": {"betas": (0.7, 0.95)}, None: {}}
    made: Any = type(ours.optimizer)
    optimizer = made(theirs.parameters(), 0.05, weight_decay=5e-4, **given[OPTIMIZERS[name]])
    for _ in range(4):
        stepped(ours)
        optimizer.zero_grad()
        theirs(torch.ones(5, 3)).square().sum().backward()
        optimizer.step()
    for mine, expected in zip(ours.model.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, expected)  # some are fused, and round otherwise
        assert mine.equal(expected) or name in ("adam", "adamw")


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({}, [1, 1, 1, 1, 1, 1, 1, 1]),
        ({"warmup": 4}, [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
        ({"schedule": "linear"}, [1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ({"schedule": "linear", "warmup": 4}, [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]),
        ({"schedule": "cosine"}, [(1 + math.cos(math.pi * t / 8)) / 2 for t in range(8)]),
        (
            {"schedule": "step", "milestones": [3, 6], "gamma": 0.5},
            [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25],
        ),
    ],
)
def test_every_group_has_the_schedules_rates(
    settings: dict[str, Any], factors: list[float]
) -> None:
    training = Training(iterations=8, learning_rate=0.2, head_learning_rate=0.6, **settings)
    learner = learner_of(training)
    for t, factor in enumerate(factors):
        learner.begin(t)
        rates = [group["lr"] for group in learner.optimizer.param_groups]
        assert rates == [pytest.approx(0.2 * factor), pytest.approx(0.6 * factor)]


@pytest.mark.parametrize(("scale", "is_clipped"), [(1.0, True), (1e-6, False)])
def test_a_gradient_longer_than_the_norm_is_shortened_to_it(scale: float, is_clipped: bool) -> None:
    training = Training(learning_rate=0.1, momentum=0.0, weight_decay=0.0, clip_norm=0.5)
    learner = learner_of(training)
    found = stepped(learner, scale)
    moved = [p.detach() - found[n][0] for n, p in learner.model.named_parameters()]
    gradient = torch.cat([g.flatten() for _, g in found.values()])
    length = 0.5 if is_clipped else float(gradient.norm())
    assert float(torch.cat([x.flatten() for x in moved]).norm()) == pytest.approx(
        0.1 * length, rel=1e-3 if is_clipped else 0.2
    )
    assert (float(gradient.norm()) > 0.5) == is_clipped


def test_the_moving_average_is_of_the_weights_after_each_step() -> None:
    learner = learner_of(Training(), decay=0.75)
    assert learner.average is not None
    expected = [p.detach().clone() for p in learner.model.parameters()]
    for t in range(3):
        learner.begin(t)
        stepped(learner)
        now = learner.model.parameters()
        expected = [0.75 * e + 0.25 * p.detach() for e, p in zip(expected, now, strict=True)]
    for mine, by_hand in zip(learner.average.model.parameters(), expected, strict=True):
        torch.testing.assert_close(mine, by_hand)


class Counting(nn.Module):
    """A layer that keeps a running mean of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean((0, 2, 3))
        return x - self.mean.view(1, 3, 1, 1)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: nn.InstanceNorm2d(3, track_running_stats=True),
        lambda: spectral_norm(nn.Conv2d(3, 3, 1)),
        Counting,
    ],
)
def test_an_average_has_the_buffers_of_the_trained_model(layer: Any) -> None:
    """Once a moving average kept the untrained model's, and was measured with them."""
    torch.manual_seed(0)
    model = nn.Sequential(layer(), nn.Flatten(), nn.Linear(48, 2))
    average = Average(model, 0.5)
    for _ in range(5):
        model(torch.randn(8, 3, 4, 4) + 5)
    ready = average.ready(model, iter(()))
    for ours, theirs in zip(ready.buffers(), model.buffers(), strict=True):
        assert ours.equal(theirs)
    assert any(buffer.abs().sum() > 0 for buffer in ready.buffers())


@pytest.mark.parametrize(
    ("settings", "after"), [(ADAMW, 1), (ADAMW, 8), (["training.optimizer=nadam"], 3)]
)
def test_a_run_goes_on_as_if_nothing_had_happened(
    gone_on: Any, settings: list[str], after: int
) -> None:
    again, whole = map(checkpoints.load_model, gone_on("method=opt", *settings, after=after))
    assert all(again[name].equal(value) for name, value in whole.items())


def test_the_moving_average_is_measured_beside_the_model(train: Any) -> None:
    directory = train("method=opt", "training.ema=0.9").directory
    measured = rows(directory)
    of_last = {row["split"]: row["loss"] for row in measured if row["iteration"] == "12"}
    assert of_last.keys() == {"train", "test", "train_averaged", "test_averaged"}
    assert of_last["train"] != of_last["train_averaged"]
    assert "weights_averaged" not in summary(directory)


def test_bfloat16_rounds_products_and_not_weights(tmp_path: Any) -> None:
    model = run_under_way(tmp_path).learner.model
    images = torch.randn(4, 3, 32, 32)
    full, half = (computed(model, images, precision) for precision in ("fp32", "bf16"))
    assert half.dtype == torch.float32
    assert 0 < (full - half).abs().max() < 0.1


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["training.optimizer=adamv"], "training.optimizer=adamv: must be one of sgd, adam"),
        (["training.optimizer=lbfgs"], "must be one of sgd, adam"),
        (["training.betas=[0.9,0.99]"], "optimizer=sgd has no betas, but momentum; leave it out"),
        (["training.optimizer=adam", "training.momentum=0.5"], "has no momentum, but betas"),
        (["training.optimizer=adam", "training.betas=[0.9]"], "must be null or two numbers in"),
        (["training.schedule=step"], "schedule=step needs some, as"),
        (["training.schedule=constant", "training.milestones=[3]"], "constant has none; leave"),
        (["training.schedule=step", "training.milestones=[3,2]"], "ascending"),
        (["training.ema=1"], "training.ema=1: must be a number in (0, 1)"),
        (["training.ema=0.9", "method=afl"], "method=afl returns the mean of its iterates"),
        (["training.learning_rate=1e300"], "must be a number > 0, below 1e38"),
        (["training.weight_decay=1e300"], "must be a number >= 0, below 1e38"),
    ],
)
def test_what_does_not_go_together_is_one_line(overrides: list[str], words: str) -> None:
    with pytest.raises(UserError) as error:
        composed(*overrides)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
