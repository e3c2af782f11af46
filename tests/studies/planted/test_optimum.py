"""The planted optimum against a generic solver and a case solved by hand; the losses' slopes."""

import numpy as np
import pytest
import torch

from robustmd.studies.planted.domains import (
    RIDGE,
    Sample,
    Setting,
    draw,
    losses_and_jacobian,
    solve_optimum,
    training_losses,
)

W = np.random.default_rng(0).standard_normal((4, 10))


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


@pytest.mark.parametrize("K", [2, 5, 50])
def test_the_certificate_closes(K):
    optimum = solve_optimum(draw(Setting(K, first_angle=150.0), 1).train)
    assert -1e-12 < optimum.worst_case.upper - optimum.worst_case.lower < 1e-9
    assert optimum.error < 1e-9
