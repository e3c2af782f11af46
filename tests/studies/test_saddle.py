"""The saddle point: its certificate, its optimality conditions, and a game solved by hand."""

import numpy as np
import pytest

from robustmd.studies.saddle import duality_gap, minimise_mixture, solve
from robustmd.studies.theory.problems import Logistic


@pytest.fixture(scope="module", params=["small", "study's"])
def solved(request: pytest.FixtureRequest, logistic):
    problem = logistic if request.param == "small" else Logistic(3)
    return problem, solve(problem.losses_and_jacobian, problem.num_parameters)


def test_the_gap_closes(solved):
    problem, saddle = solved
    assert saddle.upper - saddle.lower + 1e-12 >= 0
    assert saddle.upper - saddle.lower < 1e-9
    assert abs(duality_gap(problem.losses_and_jacobian, saddle.model, saddle.weights)) < 1e-9


def test_optimality_conditions(solved):
    problem, saddle = solved
    p = saddle.weights
    f, J = problem.losses_and_jacobian(saddle.model)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    assert np.abs(p @ J).max() < 1e-6  # stationary in W
    assert np.all(p[f < f.max() - 1e-6] == 0)  # mass on the worst domains only


def test_nearby_points_are_worse(solved, models):
    problem, saddle = solved
    for direction in models(problem, 5):
        W = saddle.model + 0.05 * direction.numpy()
        assert problem.losses_and_jacobian(W)[0].max() > saddle.upper
    for corner in np.eye(problem.num_domains):
        p = 0.8 * saddle.weights + 0.2 * corner
        least, _ = minimise_mixture(problem.losses_and_jacobian, p, problem.num_parameters)
        assert least <= saddle.lower + 1e-12


def test_the_studys_saddle_has_all_domains_in_play():
    """As docs/theory.md prints it."""
    problem = Logistic(3)
    weights = solve(problem.losses_and_jacobian, problem.num_parameters).weights
    assert weights == pytest.approx([0.288, 0.545, 0.167], abs=1e-3)
