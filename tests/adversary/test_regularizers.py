"""Values, gradients and best responses of every regularizer, each against something independent."""

import numpy as np
import pytest
import torch
from adversary.conftest import HOLED, vector
from adversary.conftest import PRIOR as Q

from robustmd.adversary import KL, L2, EntropicOT, NoRegularizer

COST = [[0.0, 1.0, 2.0, 0.3], [0.5, 0.0, 1.0, 0.7], [1.0, 1.5, 0.0, 0.2], [0.1, 0.9, 0.4, 0.0]]
MIDDLE = [0.1, 0.2, 0.3, 0.4]
BORDER = [1e-4, 0.2, 0.3, 0.4999]
F = [0.9, 0.2, 1.4, 0.0]

MAKERS = {
    "none": NoRegularizer,
    "L2": L2,
    "KL": KL,
    "OT": lambda: EntropicOT(sweeps=100),
    "OT, cost": lambda: EntropicOT(cost=COST, nu=3.0, sweeps=200),
}
legal = [(name, q) for name in MAKERS for q in (Q, HOLED) if (name, q) != ("KL", HOLED)]


def objective(regularizer, p, q, lam):
    return torch.dot(p, vector(F)) - lam / 2 * regularizer.value(p, q)


def slopes(of, p):
    """[4]: central differences of a function along the simplex, Σ move = 0."""
    reach, measured = 1e-3 * float(p.min()), []
    for k in range(4):
        move = torch.full((4,), -reach / 4, dtype=torch.float64)
        move[k] += reach
        measured.append((of(p + move) - of(p - move)) / (2 * reach))
    return torch.stack(measured)


@pytest.mark.parametrize(("name", "q"), legal)
@pytest.mark.parametrize("p", [MIDDLE, BORDER], ids=["middle", "border"])
def test_direction_is_the_gradient_by_central_differences(name, q, p):
    regularizer, p, q = MAKERS[name](), vector(p), vector(q)
    of_losses = slopes(lambda p: torch.dot(p, vector(F)), p)
    of_distance = slopes(lambda p: regularizer.value(p, q), p)
    for lam in (0.1, 2.0):
        direction = regularizer.ascent_direction(vector(F), p, q, lam)
        error = of_losses - lam / 2 * of_distance - (direction - direction.mean())
        assert error.norm() < 1e-5 * (direction - direction.mean()).norm()


def test_kl_with_a_holed_prior_moves_within_the_prior_s_support():
    q, p, f = vector(HOLED), vector([0.2, 0.0, 0.5, 0.3]), vector(F)
    direction = KL().ascent_direction(f, p, q, 0.5)
    support = q > 0
    expected = KL().ascent_direction(f[support], p[support], q[support], 0.5)
    assert torch.equal(direction[support], expected)
    assert direction[1] == 0
    assert torch.isinf(KL().value(vector(MIDDLE), q))
    assert KL().value(p, q).isfinite()


@pytest.mark.parametrize("name", ["none", "L2", "OT", "OT, cost"])
def test_direction_is_finite_on_the_border(name):
    p = vector([0.0, 1.0, 0.0, 0.0])
    for q in (Q, HOLED):
        assert MAKERS[name]().ascent_direction(vector(F), p, vector(q), 1.0).isfinite().all()


@pytest.mark.parametrize(("name", "q"), [*legal, ("KL", HOLED)])
@pytest.mark.parametrize("lam", [0.3, 3.0])
def test_at_the_best_response_the_gradient_is_constant_on_the_support(name, q, lam):
    regularizer, q = MAKERS[name](), vector(q)
    best = regularizer.best_response(vector(F), q, lam)
    direction = regularizer.ascent_direction(vector(F), best, q, lam)
    # Transport is evaluated at (1−ε)p + ε/K, ε = 1e-6, which tells where p is of that size.
    smallest, tolerance = (1e-3, 2e-4) if name.startswith("OT") else (0, 1e-12)
    support = best > smallest
    level = (best * direction)[support].sum() / best[support].sum()
    assert (direction[support] - level).abs().max() < tolerance
    if name != "KL":  # off the support nothing is to be gained
        assert (direction[~support] <= level + tolerance).all()


@pytest.mark.parametrize(("name", "q"), [*legal, ("KL", HOLED)])
@pytest.mark.parametrize("lam", [0.05, 0.3, 3.0])
def test_best_value_is_the_objective_at_the_best_response(name, q, lam):
    regularizer, q = MAKERS[name](), vector(q)
    best = regularizer.best_response(vector(F), q, lam)
    expected = float(objective(regularizer, best, q, lam))
    assert float(regularizer.best_value(vector(F), q, lam)) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(("name", "q"), legal)
def test_evaluate_is_the_objective_and_the_direction(name, q):
    shared, apart = MAKERS[name](), MAKERS[name]()
    p, q, f = vector(MIDDLE), vector(q), vector(F)
    payoff, direction = shared.evaluate(f, p, q, 0.7)
    assert float(payoff) == pytest.approx(float(objective(apart, p, q, 0.7)), abs=1e-12)
    assert torch.allclose(direction, apart.ascent_direction(f, p, q, 0.7), rtol=0, atol=1e-12)


def test_values_by_hand():
    p, q = vector([0.25, 0.75]), vector([0.5, 0.5])
    assert float(L2().value(p, q)) == pytest.approx(0.125)
    assert float(KL().value(p, q)) == pytest.approx(0.25 * np.log(0.5) + 0.75 * np.log(1.5))
    assert float(KL().value(vector([1.0, 0.0]), q)) == pytest.approx(np.log(2))
    assert float(NoRegularizer().value(p, q)) == 0
    assert float(KL().value(q, q)) == 0


def test_best_responses_by_hand():
    f, q = vector([1.0, 3.0, 3.0]), vector([0.2, 0.3, 0.5])
    assert NoRegularizer().best_response(f, q, 1.0).tolist() == [0.0, 0.5, 0.5]
    # q + f/λ = (0.3, 0.6, 0.8) at λ = 10: a shift of 0.7/3 each
    shift = 0.7 / 3
    expected = [0.3 - shift, 0.6 - shift, 0.8 - shift]
    assert L2().best_response(f, q, 10.0).tolist() == pytest.approx(expected)
    weights = np.array([0.2, 0.3, 0.5]) * np.exp(np.array([1.0, 3.0, 3.0]) * 2 / 10)
    assert KL().best_response(f, q, 10.0).tolist() == pytest.approx(weights / weights.sum())
    assert KL().best_response(f, vector([0.5, 0.5, 0.0]), 0.001).tolist() == [0.0, 1.0, 0.0]
