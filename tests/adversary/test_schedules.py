"""Step sizes and bounds: the values of method.md, optimality, and the theory's formulas by hand."""

import math
import subprocess
import sys

import pytest
from adversary.conftest import UNIT
from hypothesis import example, given
from hypothesis import strategies as st

from robustmd.adversary import kl_optimal_c, kl_regret_bound, optimal_c, regret_bound, schedules

sizes = st.floats(1e-2, 1e3)
lams = st.floats(1e-3, 1e2)
steps = st.integers(1, 10**7)


def test_the_papers_example():
    c = optimal_c(mu=100, lam=1, total_steps=10**6)
    best, plain = regret_bound(c, 100, 1, 10**6), regret_bound(0, 100, 1, 10**6)
    assert c == pytest.approx(4975.2469, rel=1e-8)
    assert best == pytest.approx(36516.463, rel=1e-8)
    assert plain == pytest.approx(74077.553, rel=1e-8)
    assert best / plain == pytest.approx(0.4929, abs=5e-5)


def rounding_of(bound, scale):
    """How far a computed bound A c + scale·ln(T/c + 1) (+ scale, for L2) may be off.

    No term is negative, and no term goes through more than 7u of roundings: A c through 5u (two
    products u each, log K 2u, the sum u); the other through 7u (scale 2u, ln 2u, the + 1 of L2,
    the product and the sum u each). Besides, the argument of ln, T/c + 1, is off by 2u of itself
    (u by the quotient, u by the sum), and so ln by 2u, however small ln is.
    """
    return 7 * UNIT * bound + 2 * UNIT * scale


def assert_no_smaller(best, other, scale):
    """`best` at c*, where the bound is flat: what c* is off by counts in second order only."""
    assert best <= other + rounding_of(best, scale) + rounding_of(other, scale)


@given(sizes, lams, steps, st.floats(-3, 3))
def test_c_star_minimises_the_bound(mu, lam, total_steps, exponent):
    c = optimal_c(mu, lam, total_steps)
    best = regret_bound(c, mu, lam, total_steps)
    other = regret_bound(c * 10**exponent, mu, lam, total_steps)
    assert_no_smaller(best, other, mu**2 / (2 * lam))


@example(299.5, 0.015625, 1, 2, 1.192092896e-07)  # T/c = 3e-5: ln keeps 11 digits
@given(sizes, lams, steps, st.integers(2, 50), st.floats(-3, 3))
def test_c_star_of_kl_minimises_its_bound(mu, lam, total_steps, k, exponent):
    c = kl_optimal_c(mu, lam, total_steps, k)
    best = kl_regret_bound(c, mu, lam, total_steps, k)
    other = kl_regret_bound(c * 10**exponent, mu, lam, total_steps, k)
    assert_no_smaller(best, other, mu**2 / lam)


def test_the_kl_bound_by_hand():
    by_hand = 0.25 * 7 * math.log(3) + 4 / 0.5 * math.log(100 / 7 + 1)
    assert kl_regret_bound(7, 2, 0.5, 100, 3) == pytest.approx(by_hand)
    assert kl_regret_bound(0, 2, 0.5, 100, 3) == pytest.approx(4 / 0.5 * (math.log(100) + 1))
    assert kl_optimal_c(2, 0.5, 100, 1) == 0


@given(st.floats(0, 1e4), steps.filter(lambda t: t <= 2000))
def test_the_logarithm_bounds_the_sum_of_the_steps(c, total_steps):
    total = sum(1 / (t + c) for t in range(1, total_steps + 1))
    # R(c; μ=√2, λ=1) = c + ln(T/c + 1) + 1, and R(0) = ln T + 1
    extra = c + 1 if c > 0 else 0
    bound = regret_bound(c, math.sqrt(2), 1.0, total_steps)
    # √2 is off by u, and so its square by 2u more; `extra` and the difference by u each. Of the
    # sum, every term is off by 2u (c + t, the quotient), and T − 1 additions by u of the whole.
    slack = rounding_of(bound, 1.0) + 4 * UNIT * bound + (total_steps + 1) * UNIT * total
    assert total <= bound - extra + slack


def test_schedules_by_hand():
    s, root = schedules, math.sqrt(2 * math.log(3))
    assert s.lemma1_model_step(5, 2, 100) == pytest.approx(5 / (2 * 10))
    assert s.lemma1_adversary_step(4, 100, 3) == pytest.approx(2 * root / (4 * 10))
    assert s.theorem1_adversary_step(4, 1000, 3) == pytest.approx(2 * root / 4 / 100)
    by_hand = math.sqrt(2 * 4 * root) / (3 * math.sqrt(7)) / 10
    assert s.theorem1_model_step(4, 3, 7, 1000, 3) == pytest.approx(by_hand)
    by_hand = 2 * 6 * math.sqrt(math.log(1000)) / (3 * math.sqrt(0.5 * 7 * 1000))
    assert s.theorem2_model_step(6, 3, 7, 0.5, 1000) == pytest.approx(by_hand)
    assert s.theorem4_model_step(3, 7, 1000) == pytest.approx(math.sqrt(2) / (3 * math.sqrt(7000)))
    assert s.theorem4_smoothness(7, 3, 0.5) == pytest.approx(7 + 9 / 0.5)
    assert s.oracle_step(50, 4) == pytest.approx(math.sqrt(math.log(4) / 100))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: optimal_c(-1, 1, 10), "mu"),
        (lambda: optimal_c(1, 0, 10), "lam"),
        (lambda: optimal_c(1, 1, 0), "total_steps"),
        (lambda: optimal_c(math.inf, 1, 10), "mu"),
        (lambda: optimal_c(1, 1, 10.0), "total_steps"),
        (lambda: regret_bound(-1, 1, 1, 10), "c"),
        (lambda: regret_bound(1, 1, math.nan, 10), "lam"),
        (lambda: kl_regret_bound(1, 1, 1, 10, 0), "num_domains"),
        (lambda: schedules.lemma1_adversary_step(0, 10, 2), "gamma"),
        (lambda: schedules.theorem4_model_step(1, -1, 10), "smoothness"),
    ],
)
def test_a_value_out_of_range_is_one_line_that_names_it(call, named):
    with pytest.raises(ValueError, match=f"^{named} is [^\n]*; it must be [^\n]*$"):
        call()


def test_schedules_come_without_torch():
    code = (
        "import sys, robustmd.adversary, robustmd.adversary.schedules as s; s.optimal_c(1, 1, 1);"
        "robustmd.adversary.optimal_c; dir(robustmd.adversary); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there():
    import robustmd.adversary

    for name in robustmd.adversary.__all__:
        assert getattr(robustmd.adversary, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = robustmd.adversary.Nothing
