"""What the rules do against opponents for which the answer is known in closed form."""

import math

import numpy as np
import pytest
import torch
from adversary.conftest import vector

from robustmd.adversary import (
    KL,
    L2,
    BestResponse,
    Fixed,
    MirrorAscent,
    MultiplicativeWeights,
    OracleRounds,
    ProjectedAscent,
    optimal_c,
)

F = [0.9, 0.7, 1.4]
Q = [0.3, 0.5, 0.2]
UNIFORM = torch.full((3,), 1 / 3, dtype=torch.float64)


def log_ratio(p, q):
    ratio = (p / q).log()
    return ratio - ratio.mean()


@pytest.mark.parametrize("c", [0.5, 10.0, 4000.0])
@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_l2_contracts_to_its_optimum_exactly(c, steps):
    adversary = ProjectedAscent(3, L2(), 5.0, c=c, prior=Q)
    best = L2().best_response(vector(F), vector(Q), 5.0)
    assert best.min() > 0  # interior
    for _ in range(steps):
        adversary.update(vector(F))
    expected = c / (steps + c) * (UNIFORM - best)
    assert (adversary.p - best - expected).abs().max() < 1e-14


@pytest.mark.parametrize("c", [0.5, 10.0, 4000.0])
@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_kl_contracts_to_its_optimum_exactly_in_log_ratios(c, steps):
    adversary = MirrorAscent(3, 0.5, c=c, prior=Q)
    q = vector(Q)
    best = log_ratio(KL().best_response(vector(F), q, 0.5), q)
    for _ in range(steps):
        adversary.update(vector(F))
    expected = c / (steps + c) * (log_ratio(UNIFORM, q) - best)
    assert (log_ratio(adversary.p, q) - best - expected).abs().max() < 1e-12


@pytest.mark.parametrize("lam", [0.1, 1.0, 5.0])
def test_c_0_lands_on_the_optimum_in_one_step(lam):
    for rule, best in (
        (ProjectedAscent(3, L2(), lam, c=0, prior=Q), L2()),
        (MirrorAscent(3, lam, c=0, prior=Q), KL()),
    ):
        rule.update(vector(F))
        target = best.best_response(vector(F), vector(Q), lam)
        assert (rule.p - target).abs().max() < 1e-14
        rule.update(vector(F))  # and stays
        assert (rule.p - target).abs().max() < 1e-14


def test_one_step_of_each_rule_by_hand():
    third = np.full(3, 1 / 3)
    f = np.array(F)
    minimax = MultiplicativeWeights(3, step="lemma1", total_steps=100)
    minimax.update(vector(F))
    eta = 2 * math.sqrt(2 * math.log(3)) / (np.linalg.norm(f) * 10)
    assert float(minimax.eta) == pytest.approx(eta)
    weights = np.exp(eta * f)
    assert minimax.p.tolist() == pytest.approx(weights / weights.sum())

    oracle = OracleRounds(3, rounds=8)
    oracle.update(vector(F))
    oracle.update(vector([2.8, 0.0, 1.4]))
    eta = math.sqrt(math.log(3) / 16)
    weights = np.exp(eta * (f / 1.4 + np.array([1.0, 0.0, 0.5])))
    assert oracle.p.tolist() == pytest.approx(weights / weights.sum())

    constant = ProjectedAscent(3, L2(), 5.0, step="constant", eta=0.1, prior=Q)
    constant.update(vector(F))
    moved = third + 0.1 * (f - 5 * (third - Q))
    assert constant.p.tolist() == pytest.approx(moved - (moved.sum() - 1) / 3)

    mirror = MirrorAscent(3, 0.5, step="constant", eta=0.1, prior=Q)
    mirror.update(vector(F))
    weights = third * np.exp(0.1 * (f - 0.25 * np.log(third / Q)))
    assert mirror.p.tolist() == pytest.approx(weights / weights.sum())


def test_fixed_stays_at_the_prior():
    adversary = Fixed(2, prior=[0.28, 0.72])
    adversary.update(torch.tensor([100.0, 0.0]))
    assert adversary.p.tolist() == [0.28, 0.72]
    assert Fixed(4).weights.tolist() == [0.25] * 4


def test_who_is_due_when():
    def due(rule):
        return [i for i in range(301) if rule.is_due(i)]

    assert due(BestResponse(2, None)) == [0, 100, 200, 300]
    assert due(OracleRounds(2, 3)) == [100, 200, 300]  # the first round is played at p₁
    assert due(BestResponse(2, None, every=150)) == [0, 150, 300]
    assert due(ProjectedAscent(2, L2(), 1.0, c=0)) == list(range(301))
    assert BestResponse(2, None).feeds_on == OracleRounds(2, 3).feeds_on == "dataset"
    assert Fixed(2).feeds_on == ProjectedAscent(2, L2(), 1.0, c=0).feeds_on == "batch"


def test_c_auto_comes_from_the_first_losses_only():
    adversary = ProjectedAscent(3, L2(), 0.5, total_steps=5000, prior=Q)
    adversary.update(vector(F))
    reach = math.sqrt(0.3**2 + 0.5**2 + 0.8**2)  # the vertex of the smallest prior
    c = optimal_c(np.linalg.norm(F) + 0.5 * reach, 0.5, 5000)
    assert float(adversary.step.c) == pytest.approx(c, rel=1e-12)
    adversary.update(vector([100.0, 0.0, 0.0]))
    assert float(adversary.step.c) == pytest.approx(c, rel=1e-12)
    given = ProjectedAscent(3, L2(), 0.5, mu=2.0, total_steps=5000)
    assert float(given.step.c) == pytest.approx(optimal_c(2.0, 0.5, 5000), rel=1e-12)


def test_c_auto_of_kl_minimises_its_own_bound():
    adversary = MirrorAscent(3, 0.5, total_steps=5000, prior=Q)
    adversary.update(vector(F))
    mu = 2 * 1.4 + 0.25 * max(abs(math.log(1 / 3 / weight)) for weight in Q)
    c = optimal_c(mu / math.sqrt(math.log(3)), 0.25, 5000)
    assert float(adversary.step.c) == pytest.approx(c, rel=1e-12)
    assert adversary.regret_bound(mu, 5000) == pytest.approx(
        0.25 * c * math.log(3) + mu**2 / 0.5 * math.log(5000 / c + 1)
    )


def test_a_domain_at_weight_0_comes_back():
    for adversary in (
        ProjectedAscent(2, L2(), 0.01, c=10.0),
        MirrorAscent(2, 0.01, c=10.0),
        MultiplicativeWeights(2, step="constant", eta=1.0),
    ):
        for _ in range(200):
            adversary.update(torch.tensor([5.0, 0.0]))
        assert adversary.p[1] == 0
        for _ in range(400):
            adversary.update(torch.tensor([0.0, 5.0]))
        assert adversary.p[1] > 0.99


def test_a_pinned_domain_stays_at_0():
    for adversary in (
        MirrorAscent(3, 0.1, total_steps=100, prior=[0.5, 0.5, 0.0]),
        MultiplicativeWeights(3, total_steps=100, prior=[0.5, 0.5, 0.0]),
        OracleRounds(3, 50, prior=[0.5, 0.5, 0.0]),
        BestResponse(3, KL(), 0.1, prior=[0.5, 0.5, 0.0]),
    ):
        assert adversary.p.tolist() == [0.5, 0.5, 0.0]
        for _ in range(100):
            adversary.update(torch.tensor([1.0, 2.0, 100.0]))
        assert adversary.p[2] == 0
        assert adversary.p[1] > 0.5


# Two domains against a model with two actions: f = A w, w in the simplex. At p the rows balance
# (1 + 2p₁ = 2(1 − p₁)) and at w the domains do (3w₁ = w₁ + 2(1 − w₁)).
GAME = vector([[3.0, 0.0], [1.0, 2.0]])
VALUE, P_STAR, W_STAR = 1.5, [0.25, 0.75], [0.5, 0.5]


def play_game(adversary, rounds):
    """The model answers p with its best action; returns the averages (p̄, w̄)."""
    total = torch.zeros(2, dtype=torch.float64)
    for _ in range(rounds):
        action = torch.nn.functional.one_hot((adversary.p @ GAME).argmin(), 2).double()
        total += action
        adversary.update(GAME @ action)
    return adversary.average, total / rounds


@pytest.mark.parametrize(
    "make",
    [
        lambda rounds: MultiplicativeWeights(2, step="lemma1", total_steps=rounds),
        lambda rounds: OracleRounds(2, rounds),
    ],
    ids=["multiplicative weights", "oracle rounds"],
)
def test_averages_solve_a_matrix_game(make):
    rounds = 1000
    p, w = play_game(make(rounds), rounds)
    worst_of_model = float((GAME @ w).max())
    best_against_p = float((p @ GAME).min())
    assert best_against_p <= VALUE <= worst_of_model
    # The regret is at most the largest loss times sqrt(log K/(2R)), doubled for safety.
    assert worst_of_model - best_against_p < 3 * 2 * math.sqrt(math.log(2) / (2 * rounds))
    assert p.tolist() == pytest.approx(P_STAR, abs=0.05)
    assert w.tolist() == pytest.approx(W_STAR, abs=0.05)


def test_the_average_is_over_the_distributions_that_were_played():
    adversary = MultiplicativeWeights(2, step="constant", eta=0.5)
    played = []
    for losses in ([1.0, 0.0], [0.0, 3.0], [2.0, 1.0]):
        played.append(adversary.p.clone())
        adversary.update(torch.tensor(losses))
    assert torch.allclose(adversary.average, torch.stack(played).mean(dim=0))


def test_first_losses_of_0_do_not_make_the_step_infinite():
    for adversary in (
        MultiplicativeWeights(2, total_steps=100),
        ProjectedAscent(2, L2(), 0.1, total_steps=100),
        MirrorAscent(2, 0.1, total_steps=100),
        OracleRounds(2, 50),
    ):
        adversary.update(torch.zeros(2))
        assert adversary.p.tolist() == [0.5, 0.5]
        adversary.update(torch.tensor([1.0, 2.0]))
        assert float(adversary.p.sum()) == pytest.approx(1)


@pytest.mark.parametrize("unseen", [0.0, 1e-9], ids=["nothing", "nothing but rounding"])
def test_minimax_takes_its_step_from_the_first_losses_that_are_there(unseen):
    late, fresh = (MultiplicativeWeights(2, total_steps=100) for _ in range(2))
    for _ in range(3):
        late.update(torch.full((2,), unseen))
        assert late.p.tolist() == [0.5, 0.5]
        assert late.regret_bound(1.0, 100) is None
    for adversary in (late, fresh):
        adversary.update(torch.tensor([1.0, 2.0]))
    assert torch.equal(late.eta, fresh.eta)
    assert torch.equal(late.p, fresh.p)
    assert 0.5 < float(late.p[1]) < 0.6


def test_a_state_of_before_the_first_update_lets_auto_c_be_set_anew():
    """As when a warm-up is undone before the iteration is captured in a CUDA graph."""
    adversary = ProjectedAscent(2, L2(), 0.5, total_steps=100)
    before = {name: value.clone() for name, value in adversary.state_dict().items()}
    adversary.update(torch.tensor([1.0, 3.0]))
    first = float(adversary.step.c)
    adversary.load_state_dict(before)
    adversary.update(torch.tensor([10.0, 30.0]))
    adversary.update(torch.tensor([0.1, 0.3]))
    fresh = ProjectedAscent(2, L2(), 0.5, total_steps=100)
    fresh.update(torch.tensor([10.0, 30.0]))
    assert float(adversary.step.c) == float(fresh.step.c) > first
