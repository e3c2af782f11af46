"""Entropic transport against POT, and what the warm start may and may not change."""

import numpy as np
import ot
import pytest
import torch
from adversary.conftest import HOLED, vector

from robustmd.adversary import EntropicOT, ProjectedAscent

COST = np.array([[0, 1, 2, 0.3], [0.5, 0, 1, 0.7], [1, 1.5, 0, 0.2], [0.1, 0.9, 0.4, 0]])
UNIT = 1 - np.eye(4)
Q = np.array([0.4, 0.3, 0.2, 0.1])
EPS = 1e-6


def plan(regularizer, cost, p, q):
    """P from the potentials, by the formula of the class's docstring (any α, β up to constants)."""
    zero = torch.zeros(4, dtype=torch.float64)
    alpha = regularizer.ascent_direction(zero, vector(p), vector(q), 2.0) / (1 - EPS)
    kernel = torch.exp(-regularizer.nu * (vector(cost) + alpha[:, None]))
    return (kernel * (vector(q) / kernel.sum(dim=0))).numpy()


@pytest.mark.parametrize("cost", [UNIT, COST], ids=["unit", "general"])
@pytest.mark.parametrize("nu", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("p", [[0.1, 0.2, 0.3, 0.4], [0.97, 0.01, 0.01, 0.01]])
def test_value_and_plan_agree_with_pot(cost, nu, p):
    regularizer = EntropicOT(cost=cost.tolist(), nu=nu, sweeps=2000)
    inside = np.array(p) * (1 - EPS) + EPS / 4
    theirs = ot.sinkhorn(inside, Q, cost, reg=1 / nu, method="sinkhorn_log", stopThr=1e-15)
    value = (theirs * cost).sum() + (theirs * np.log(theirs)).sum() / nu
    assert float(regularizer.value(vector(p), vector(Q))) == pytest.approx(value, abs=1e-9)
    assert np.abs(plan(regularizer, cost, p, Q) - theirs).max() < 1e-9


def test_a_holed_prior_agrees_with_pot_on_its_support():
    q, p = np.array(HOLED), [0.1, 0.2, 0.3, 0.4]
    inside, on = np.array(p) * (1 - EPS) + EPS / 4, q > 0
    regularizer = EntropicOT(cost=COST.tolist(), nu=2.0, sweeps=2000)
    theirs = ot.sinkhorn(inside, q[on], COST[:, on], reg=0.5, method="sinkhorn_log", stopThr=1e-15)
    value = (theirs * COST[:, on]).sum() + (theirs * np.log(theirs)).sum() / 2
    assert float(regularizer.value(vector(p), vector(q))) == pytest.approx(value, abs=1e-9)
    ours = plan(regularizer, COST, p, q)
    assert np.abs(ours[:, on] - theirs).max() < 1e-9
    assert (ours[:, ~on] == 0).all()


@pytest.mark.parametrize("nu", [1e-9, 0.5, 4.0, 60.0])
def test_the_closed_form_of_unit_costs_is_the_matrix_of_unit_costs(nu):
    p, q, f = vector([0.1, 0.2, 0.7, 0.0]), vector(HOLED), vector([3.0, 0, 1, 2])
    short, whole = EntropicOT(nu=nu), EntropicOT(UNIT.tolist(), nu=nu)
    for _ in range(3):  # from the last potentials
        ours, theirs = short.evaluate(f, p, q, 0.3), whole.evaluate(f, p, q, 0.3)
        assert ours[0].item() == pytest.approx(theirs[0].item(), rel=1e-12)
        assert ours[1].tolist() == pytest.approx(theirs[1].tolist(), rel=1e-9)
    assert float(short.marginal_error) == pytest.approx(float(whole.marginal_error), abs=1e-12)
    best = short.best_response(f, q, 0.3)
    assert best.tolist() == pytest.approx(whole.best_response(f, q, 0.3).tolist(), abs=1e-14)
    assert best.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("nu", [0.5, 1.0, 3.0])
def test_without_losses_the_best_response_is_not_the_prior_in_general(nu):
    zero, q = torch.zeros(4, dtype=torch.float64), vector(Q)
    best = EntropicOT(cost=COST.tolist(), nu=nu).best_response(zero, q, 1.0)
    columns = np.exp(-nu * COST)
    assert best.tolist() == pytest.approx(columns / columns.sum(axis=0) @ Q)
    assert (best - q).abs().max() > 0.01
    uniform = torch.full((4,), 0.25, dtype=torch.float64)
    assert EntropicOT(nu=nu).best_response(zero, uniform, 1.0).tolist() == pytest.approx([0.25] * 4)


def test_ten_sweeps_are_enough_at_nu_1_and_the_error_says_when_not():
    p, q, zero = vector([0.3, 0.25, 0.25, 0.2]), vector(Q), torch.zeros(4, dtype=torch.float64)
    good, bad = EntropicOT(), EntropicOT(nu=20.0)
    good.ascent_direction(zero, p, q, 1.0)
    bad.ascent_direction(zero, p, q, 1.0)
    assert good.marginal_error < 1e-8
    assert bad.marginal_error > 1e-3
    for _ in range(20):  # warm-started, the same ten sweeps get there
        bad.ascent_direction(zero, p, q, 1.0)
    assert bad.marginal_error < 1e-8


def test_looking_at_the_value_leaves_the_warm_start_alone():
    regularizer = EntropicOT(nu=5.0)
    p, q, f = vector([0.3, 0.25, 0.25, 0.2]), vector(Q), torch.ones(4, dtype=torch.float64)
    regularizer.ascent_direction(f, p, q, 1.0)
    before = {name: buffer.clone() for name, buffer in regularizer.named_buffers()}
    regularizer.value(vector([0.7, 0.1, 0.1, 0.1]), q)
    regularizer.best_response(f, q, 1.0)
    regularizer.best_value(f, q, 1.0)
    for name, buffer in regularizer.named_buffers():
        assert torch.equal(buffer, before[name])


def test_potentials_do_not_drift_over_many_updates():
    regularizer = EntropicOT()
    p, q, f = vector([0.3, 0.25, 0.25, 0.2]), vector(Q), torch.ones(4, dtype=torch.float64)
    for _ in range(50):
        regularizer.ascent_direction(f, p, q, 1.0)
    settled = regularizer.potential.clone()
    for _ in range(500):
        regularizer.ascent_direction(f, p, q, 1.0)
    assert (regularizer.potential - settled).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: EntropicOT(nu=0), "nu is 0; it must be"),
        (lambda: EntropicOT(sweeps=0), "sweeps is 0; it must be"),
        (lambda: EntropicOT(cost=[[0, 1]]), "cost has rows of lengths"),
        (lambda: EntropicOT(cost=[]), "cost has rows of lengths"),
        (lambda: EntropicOT(cost=[[0, -1], [1, 0]]), "must be finite and not negative"),
        (lambda: ProjectedAscent(3, EntropicOT(cost=[[0, 1], [1, 0]]), 1, c=0), "must be 3×3"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, said):
    with pytest.raises(ValueError, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_one_instance_does_not_serve_two_numbers_of_domains():
    regularizer = EntropicOT()
    ProjectedAscent(3, regularizer, 1.0, c=0)
    with pytest.raises(ValueError, match="has 3 domains, not 2"):
        ProjectedAscent(2, regularizer, 1.0, c=0)
