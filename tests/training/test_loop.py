"""The iteration itself: gradients, order of events, and that p is a constant of the step."""

from typing import Any

import pytest
import torch
from tiny import parts, rows
from torch import nn
from torch.nn import functional

from robustmd.adversary import L2, Adversary, ProjectedAscent, VarianceRisk
from robustmd.training.loop import Steps, domain_losses, iterate


@pytest.fixture
def batch() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    return model, torch.randn(12, 3, 8, 8), torch.arange(12) % 5


def test_losses_are_each_shares_mean_cross_entropy(batch) -> None:
    model, images, labels = batch
    losses = domain_losses(model(images), labels, 3)
    for k in range(3):
        share = slice(4 * k, 4 * k + 4)
        expected = functional.cross_entropy(model(images[share]), labels[share])
        torch.testing.assert_close(losses[k], expected)


def test_the_weights_are_never_differentiated_through(batch) -> None:
    model, images, labels = batch
    adversary: Adversary = ProjectedAscent(3, L2(), lam=0.1, total_steps=10)
    losses = domain_losses(model(images), labels, 3)
    (adversary.weights @ losses).backward()
    adversary.update(losses)
    assert not adversary.weights.requires_grad
    assert all(not buffer.requires_grad for buffer in adversary.buffers())


def test_the_variance_rule_gives_exactly_the_gradient_of_its_objective(batch) -> None:
    model, images, labels = batch
    rule = VarianceRisk(3, beta=2.0)
    losses = domain_losses(model(images), labels, 3)
    rule.update(losses)  # before the weighted sum: it weighs the current batch
    parameters = list(model.parameters())
    ours = torch.autograd.grad(rule.weights @ losses, parameters, retain_graph=True)
    objective = losses.mean() + 2.0 * losses.var(correction=0)
    for weighted, exact in zip(ours, torch.autograd.grad(objective, parameters), strict=True):
        torch.testing.assert_close(weighted, exact)


def test_a_rule_that_looks_back_is_told_the_same_batchs_losses_after_the_step() -> None:
    made, told = parts(torch.device("cpu"), "method=famo"), []
    made.learner.adversary.look_back = lambda losses, present: told.append(losses)  # type: ignore
    steps = Steps(made)
    iterate(made, steps)
    before = steps.whole[0]
    steps.forward()
    assert torch.equal(told[0], steps.whole[0])
    assert not torch.equal(told[0], before)
    assert not told[0].requires_grad


@pytest.mark.parametrize(("method", "current"), [("topk", True), ("afl", False)])
def test_a_rule_without_memory_weighs_the_batch_whose_losses_it_saw(
    train: Any, method: str, current: bool
) -> None:
    """topk has all the weight on the worst domain of the same row; afl starts at even weights."""
    outcome = train(f"method={method}", "logging.every=1")
    found = rows(outcome.directory, "weights.csv")
    for first, second in zip(found[::2], found[1::2], strict=True):
        worst = max(first, second, key=lambda row: float(row["batch_loss"]))
        assert (float(worst["weight"]) == 1.0) == current
    assert (float(found[0]["weight"]) == 0.5) == (not current)
