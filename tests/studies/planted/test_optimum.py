"""The planted optimum against a generic solver and a case solved by hand; the losses' slopes."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from robustmd.studies.planted.domains import (
    RIDGE,
    Sample,
    Setting,
    cross_entropies,
    draw,
    losses_and_jacobian,
    solve_optimum,
    training_losses,
)

W = np.random.default_rng(0).standard_normal((4, 10))


def by_cutting_planes(losses, num_parameters: int, rounds: int = 600) -> tuple[float, float]:
    """Kelley's method, linear programs in a box: (best value seen, lower bound) of min max_k f_k.

    Shares nothing with the package's solver but f and its slopes, which autograd checks below.
    """
    w, best, rows, sides = np.zeros(num_parameters), np.inf, [], []
    for _ in range(rounds):
        f, J = losses(w)
        best = min(best, f.max())
        rows += [np.append(slope, -1.0) for slope in J]  # f_k(w₀) + ∇f_k·(w − w₀) ≤ ε
        sides += list(J @ w - f)
        bounds = [(-4.0, 4.0)] * num_parameters + [(None, None)]
        objective = np.append(np.zeros(num_parameters), 1.0)
        found = linprog(objective, np.array(rows), np.array(sides), bounds=bounds)
        w = found.x[:-1]
        if best - found.fun < 1e-5:
            break
    return best, found.fun


def first_features(sample: Sample, d: int) -> Sample:
    """Cutting planes want few dimensions."""
    return Sample(sample.signed[:, :, :d], sample.shares)


@pytest.mark.parametrize("setting", [Setting(3, mean_size=30), Setting(2, first_flips=0.45)])
def test_a_generic_solver_finds_the_same_optima(setting):
    sample = first_features(draw(setting, 2).train, 3)
    optimum = solve_optimum(sample)
    best, bound = by_cutting_planes(lambda w: losses_and_jacobian(sample, w), 3)
    assert bound - 1e-9 <= optimum.worst_case.upper <= best + 1e-9
    assert best - bound < 2e-5

    def excess(w):
        f, J = losses_and_jacobian(sample, w)
        return f - optimum.alone, J

    best, bound = by_cutting_planes(excess, 3)
    assert bound - 1e-9 <= optimum.worst_excess.upper <= best + 1e-9
    assert best - bound < 2e-5
    for k, alone in enumerate(optimum.alone):
        only = Sample(sample.signed[k : k + 1], sample.shares[k : k + 1])
        best, bound = by_cutting_planes(lambda w, only=only: losses_and_jacobian(only, w), 3)
        assert bound - 1e-9 <= alone <= best + 1e-9


def test_two_domains_that_contradict_each_other_leave_log_2():
    """f_2(w) = f_1(−w): by convexity w = 0 is best."""
    x = draw(Setting(2), 0).train
    optimum = solve_optimum(Sample(np.stack([x.signed[0], -x.signed[0]]), x.shares))
    assert optimum.worst_case.upper == pytest.approx(np.log(2), abs=1e-12)
    assert optimum.worst_case.weights == pytest.approx([0.5, 0.5])
    assert optimum.worst_excess.upper == pytest.approx(np.log(2) - optimum.alone[0], abs=1e-10)


def test_losses_and_slopes_are_autograds(sample, setting):
    w = torch.from_numpy(W[0]).requires_grad_()
    for k, n in enumerate(setting.sizes()):
        signed = torch.from_numpy(sample.signed[k, :n])
        loss = -torch.nn.functional.logsigmoid(signed @ w).mean() + RIDGE / 2 * (w @ w)
        (slope,) = torch.autograd.grad(loss, w)
        f, J = losses_and_jacobian(sample, W[0])
        loss = loss.detach()
        assert f[k] == pytest.approx(float(loss), rel=1e-12)
        assert J[k] == pytest.approx(slope.numpy(), rel=1e-10)
        assert training_losses(sample, W)[0, k] == pytest.approx(float(loss), rel=1e-12)


def test_many_models_at_once_are_each_alone(sample):
    together = cross_entropies(sample, W)
    assert together.shape == (4, 3)
    for w, losses in zip(W, together, strict=True):
        assert losses == pytest.approx(cross_entropies(sample, w[None])[0], rel=1e-13)
    assert cross_entropies(sample, W[:1] * 0)[0] == pytest.approx(np.full(3, np.log(2)))


@pytest.mark.parametrize("K", [2, 5, 50])
def test_the_certificate_closes(K):
    optimum = solve_optimum(draw(Setting(K, first_angle=150.0), 1).train)
    assert -1e-12 < optimum.worst_case.upper - optimum.worst_case.lower < 1e-9
    assert optimum.error < 1e-9
    assert optimum.worst_excess.upper > 0
