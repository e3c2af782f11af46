"""Projection onto the simplex: against exact arithmetic, a QP solver and the KKT conditions."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from adversary.conftest import UNIT
from hypothesis import given, settings
from hypothesis import strategies as st

from robustmd.adversary import effective_number, project_simplex, uniform

moderate = st.floats(-1e3, 1e3)
any_size = st.one_of(
    moderate,
    st.floats(-1e300, 1e300),
    st.floats(-1e-8, 1e-8),
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e15, 1e15 + 0.125, 5e-324]),  # ties
)


def vectors(entries, max_size=12):
    return st.lists(entries, min_size=1, max_size=max_size)


def exact_projection(v):
    """Michelot's active set in exact arithmetic: drop what is at or below the threshold, repeat."""
    x = [Fraction(value) for value in v]
    active = set(range(len(x)))
    while True:
        tau = (sum(x[k] for k in active) - 1) / len(active)
        keep = {k for k in active if x[k] > tau}
        if keep == active:
            return [float(x[k] - tau) if k in active else 0.0 for k in range(len(x))]
        active = keep


def project(v):
    return project_simplex(torch.tensor(v, dtype=torch.float64))


@settings(max_examples=300)
@given(vectors(any_size))
def test_it_equals_an_active_set_solution_in_exact_arithmetic(v):
    # With the largest entry at 0, τ is at least −1, and the j entries above τ and their sums at
    # most j in size. τ is off by (j + 2)u: the entries u, j − 1 sums, the − 1, the quotient. p is
    # off by 3u more: its entry, the difference, and the exact value made a float.
    assert np.abs(project(v).numpy() - exact_projection(v)).max() <= (len(v) + 5) * UNIT


def test_kkt_conditions_over_thousands_of_random_inputs():
    generator = torch.Generator().manual_seed(0)
    for k in (1, 2, 3, 10, 100):
        for scale in (1e-9, 0.1, 1.0, 30.0):
            v = torch.randn(500, k, generator=generator, dtype=torch.float64) * scale
            p = project_simplex(v)
            tau = (v - p).where(p > 0, -torch.inf).amax(dim=1, keepdim=True)
            assert p.min() >= 0
            assert (p.sum(dim=1) - 1).abs().max() < 1e-13
            # p = v − τ on the support; v ≤ τ off it.
            assert (v - p - tau).where(p > 0, 0).abs().max() < 1e-13 * max(1, scale)
            assert (v - tau).where(p == 0, -torch.inf).max() <= 1e-13 * max(1, scale)


@settings(max_examples=100)
@given(vectors(moderate), moderate)
def test_a_constant_shift_changes_nothing(v, shift):
    x = torch.tensor(v, dtype=torch.float64)
    shifted = x + shift
    # The sums are off by u of their size, which moves an entry and τ by as much each; and each
    # projection is off by (K + 4)u, as above.
    slack = 2 * UNIT * (float(shifted.abs().max()) + len(v) + 4)
    assert (project_simplex(shifted) - project_simplex(x)).abs().max() <= slack


@pytest.mark.parametrize(
    ("v", "p"),
    [
        ([7.0], [1.0]),
        ([-1e300], [1.0]),
        ([0.0, 0.0], [0.5, 0.5]),
        ([1e300, 1e300, 0.0], [0.5, 0.5, 0.0]),
        ([1e15, 1e15 + 0.25], [0.375, 0.625]),
        ([0.3, 0.7], [0.3, 0.7]),
        ([2.0, 1.0], [1.0, 0.0]),
        ([0.5, -torch.inf, 0.5], [0.5, 0.0, 0.5]),
    ],
)
def test_known_values(v, p):
    assert project(v).tolist() == p


def test_rows_are_projected_each_for_itself():
    v = torch.randn(3, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rows = [project_simplex(row) for row in v.reshape(-1, 7)]
    assert torch.equal(project_simplex(v), torch.stack(rows).reshape(v.shape))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_comes_back_and_float64_does_the_work(dtype):
    v = torch.tensor([0.25, 1e4, 1e4], dtype=dtype)
    assert project_simplex(v).dtype == dtype
    assert project_simplex(v).tolist() == [0.0, 0.5, 0.5]


def test_its_jacobian_is_the_projection_onto_the_support():
    v = torch.tensor([0.6, 0.5, -2.0, 0.1], dtype=torch.float64)
    on = torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(project_simplex, v)
    assert torch.allclose(jacobian, torch.diag(on) - torch.outer(on, on) / 3)


def test_uniform_and_effective_number():
    assert uniform(4).tolist() == [0.25] * 4
    assert uniform(3).dtype == torch.float64
    assert float(effective_number(uniform(5))) == pytest.approx(5)
    assert float(effective_number(torch.tensor([0.0, 1.0, 0.0]))) == 1.0
    both = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    assert effective_number(both).tolist() == pytest.approx([2.0, 1.0])
