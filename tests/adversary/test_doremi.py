"""DoReMi's weights, against the published update written out, and its example."""

import math

import pytest
import torch

from robustmd.adversary import DoReMi


def published(losses: list[list[float]], eta: float, c: float) -> list[list[float]]:
    """Algorithm 1 by hand: α_0 uniform, then one α for each row of λ."""
    k = len(losses[0])
    alpha, found = [1 / k] * k, []
    for row in losses:
        raised = [a * math.exp(eta * x) for a, x in zip(alpha, row, strict=True)]
        alpha = [(1 - c) * a / sum(raised) + c / k for a in raised]
        found.append(alpha)
    return found


@pytest.mark.parametrize(("eta", "c"), [(1.0, 1e-3), (0.1, 0.0), (5.0, 0.2)])
def test_it_is_the_published_update(eta: float, c: float) -> None:
    losses = [[0.5, 0.0, 1.5], [0.1, 0.3, 0.0], [2.0, 0.0, 0.0]]
    rule = DoReMi(3, eta=eta, smoothing=c)
    alphas = published(losses, eta, c)
    for row, alpha in zip(losses, alphas, strict=True):
        rule.update(torch.tensor(row, dtype=torch.float64))
        assert rule.p.tolist() == pytest.approx(alpha, rel=1e-12)
    mean = [sum(column) / 3 for column in zip(*alphas, strict=True)]
    assert rule.average.tolist() == pytest.approx(mean, rel=1e-12)


def test_long_training_neither_overflows_nor_loses_a_domain() -> None:
    rule = DoReMi(2)
    for _ in range(2000):
        rule.update(torch.tensor([3.0, 0.0]))
    least = 5e-4 / (1 - 0.999 * math.exp(-3))  # α = (1 − c) α e⁻³ + c/2, where α is small
    assert rule.p[1].item() == pytest.approx(least, rel=1e-3)


def test_without_smoothing_a_domain_may_go_and_the_weights_stay_finite() -> None:
    rule = DoReMi(2, smoothing=0.0)
    for _ in range(2000):
        rule.update(torch.tensor([3.0, 0.0]))
    assert rule.weights.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_out_of_range_is_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match="smoothing"):
        DoReMi(2, smoothing=smoothing)
