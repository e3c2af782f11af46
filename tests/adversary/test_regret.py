"""The measured regret, by hand and against the proved bounds, and which λ keeps domains in play."""

import math

import pytest
import torch
from adversary.conftest import UNIT, vector
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from robustmd.adversary import (
    KL,
    L2,
    BestResponse,
    EntropicOT,
    Fixed,
    MirrorAscent,
    MultiplicativeWeights,
    NoRegularizer,
    OracleRounds,
    ProjectedAscent,
    RegretMeter,
    effective_number,
    lam_keeping_all_in_play,
)

Q = [0.5, 0.3, 0.2]
HOLED = [0.6, 0.0, 0.4]


def play(adversary, losses):
    meter = RegretMeter.of(adversary)
    for row in losses:
        meter.update(adversary.update(row))
    return meter


def losses_of(kind, steps, seed):
    """[steps, 3]: noise, or a worst domain that changes twice."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(steps, 3, generator=generator, dtype=torch.float64) * 3
    if kind == "noise":
        return noise
    turn = torch.arange(steps) * 3 // max(steps, 1)
    return noise * 0.1 + 4 * torch.nn.functional.one_hot(turn, 3)


LARGEST = 4.3  # loss that `losses_of` makes: 4 + 0.1 · 3


def rounding_of_regret(steps, state, direction):
    """How far the measured regret per update may lie above that of exact play.

    An update takes 16 roundings at most, each u of the largest number in the rule's state (p for
    L2, logarithms for the others), and no later one enlarges them: after T updates p is off by
    16Tu times that. The regret is off by p's error times the direction ĥ; sums of T terms of ĥ's
    size, μ and the bound are off by less.
    """
    return 16 * steps * UNIT * state * direction


runs = {
    "kind": st.sampled_from(["noise", "turns"]),
    "steps": st.integers(1, 100),
    "seed": st.integers(0, 10**6),
    "lam": st.floats(0.02, 20),
    "c": st.sampled_from([0.0, 0.3, 20.0, "auto", "centred"]),
    "prior": st.sampled_from([None, Q, HOLED]),
}


def both_rules(lam, c, prior, steps):
    return [
        ProjectedAscent(3, L2(), lam, c=c, prior=prior, total_steps=steps),
        MirrorAscent(3, lam, c=c, prior=prior, total_steps=steps),
    ]


@settings(max_examples=40)
@given(**runs)
def test_measured_regret_never_exceeds_its_bound(kind, steps, seed, lam, c, prior):
    for adversary in both_rules(lam, c, prior, steps):
        summary = play(adversary, losses_of(kind, steps, seed)).summary(adversary)
        assert summary["updates"] == steps
        # The state is a mean of earlier 2f̂/λ + log q (KL) or f̂/λ + q (L2), |log q| < 2; and
        # ĥ is f̂ less λ/2 times that.
        state, direction = 2 * LARGEST / lam + 3, 2 * LARGEST + 2 * lam
        slack = rounding_of_regret(steps, state, direction)
        assert summary["measured"] <= summary["bound"] + slack


@settings(max_examples=20)
@given(steps=st.integers(1, 100), seed=st.integers(0, 10**6), gamma=st.floats(0.5, 5))
def test_regret_of_multiplicative_weights_never_exceeds_its_bound(steps, seed, gamma):
    adversary = MultiplicativeWeights(3, total_steps=steps, gamma=gamma, prior=Q)
    summary = play(adversary, losses_of("turns", steps, seed)).summary(adversary)
    log_p = 2 + steps * float(adversary.eta) * LARGEST  # |log q| < 2
    slack = rounding_of_regret(steps, log_p, LARGEST)
    assert summary["measured"] <= summary["bound"] + slack


@pytest.mark.parametrize("rule", [0, 1], ids=["L2", "KL"])
def test_a_centred_c_does_not_see_the_losses_level(rule):
    def weights(c, level):
        adversary = both_rules(0.3, c, Q, 50)[rule]
        for losses in losses_of("noise", 20, 0) + level:
            adversary.update(losses)
        return adversary.p

    assert weights("centred", 5.0).tolist() == pytest.approx(weights("centred", 0.0).tolist())
    assert not torch.allclose(weights("auto", 5.0), weights("auto", 0.0), atol=1e-3)


def test_a_loss_that_is_not_finite_leaves_no_bound_and_no_exception():
    for adversary in both_rules(1.0, 0.5, None, 10):
        meter = play(adversary, [vector([1.0, 2.0, math.nan])])
        assert meter.summary(adversary)["bound"] is None


@pytest.mark.parametrize("prior", [None, Q, HOLED])
@pytest.mark.parametrize("rule", ["L2", "KL", "OT", "none"])
def test_measured_regret_by_its_definition(rule, prior):
    losses, lam = losses_of("turns", 30, 3), 0.8
    adversary = {
        "L2": lambda: ProjectedAscent(3, L2(), lam, c=5.0, prior=prior),
        "KL": lambda: MirrorAscent(3, lam, c=5.0, prior=prior),
        "OT": lambda: ProjectedAscent(3, EntropicOT(sweeps=60), lam, c=5.0, prior=prior),
        "none": lambda: MultiplicativeWeights(3, step="constant", eta=0.3),
    }[rule]()
    regularizer = getattr(adversary, "regularizer", NoRegularizer())
    q = adversary.prior

    def objective(p, f):
        return float(p @ f - lam / 2 * regularizer.value(p, q))

    meter, got, largest = RegretMeter.of(adversary), 0.0, 0.0
    for f in losses:
        p = adversary.p.clone()
        got += objective(p, f)
        played = adversary.update(f)
        meter.update(played)
        assert float(played.payoff) == pytest.approx(objective(p, f), abs=1e-9)
        norm = torch.inf if rule == "KL" else 2
        largest = max(largest, float(torch.linalg.vector_norm(played.direction, norm)))
    support = (q > 0 if rule == "KL" else q >= 0).numpy()
    found = minimize(
        lambda p: -objective(vector(p), losses.mean(dim=0)),
        support / support.sum(),
        bounds=[(0, float(allowed)) for allowed in support],
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-13},
    ).fun
    assert float(meter.measured()) == pytest.approx(-found - got / 30, abs=1e-5)
    assert float(meter.mu) == pytest.approx(largest)


def test_best_response_and_fixed_are_measured_too():
    losses = losses_of("noise", 50, 1)
    for adversary in (
        Fixed(3),
        BestResponse(3, L2(), 1.0),
        BestResponse(3, None),
        OracleRounds(3, 5),
    ):
        summary = play(adversary, losses).summary(adversary)
        assert summary["bound"] is None
        assert math.isfinite(summary["measured"])
    fixed = Fixed(3)
    expected = float(losses.mean(dim=0).max() - losses.mean())
    assert float(play(fixed, losses).measured()) == pytest.approx(expected)


def test_rules_without_a_proof_have_no_bound():
    for adversary in (
        ProjectedAscent(3, EntropicOT(), 1.0, c=1.0),
        ProjectedAscent(3, L2(), 1.0, step="constant", eta=0.1),
        MirrorAscent(3, 1.0, step="constant", eta=0.1),
        MultiplicativeWeights(3, total_steps=10, gamma=1.0, prior=HOLED),
    ):
        assert adversary.regret_bound(1.0, 10) is None


def test_a_meter_before_its_first_update_has_no_number():
    adversary = ProjectedAscent(3, L2(), 1.0, total_steps=10)
    summary = RegretMeter.of(adversary).summary(adversary)
    assert math.isnan(summary["measured"])
    assert (summary["bound"], summary["mu"], summary["updates"]) == (None, 0.0, 0)


def test_a_saved_meter_goes_on_bit_for_bit():
    losses = losses_of("turns", 40, 5)
    adversary = ProjectedAscent(3, EntropicOT(), 1.0, total_steps=40)
    meter = play(adversary, losses[:20])
    fresh = ProjectedAscent(3, EntropicOT(), 1.0, total_steps=40)
    fresh.load_state_dict(adversary.state_dict())
    other = RegretMeter.of(fresh)
    other.load_state_dict(meter.state_dict())
    for row in losses[20:]:
        meter.update(adversary.update(row))
        other.update(fresh.update(row))
    assert meter.summary(adversary) == other.summary(fresh)


def test_the_l2_best_response_is_interior_just_above_the_lam_that_is_named():
    f = vector([0.2, 0.9, 1.0])
    lam = lam_keeping_all_in_play(L2(), f, Q)
    assert lam == pytest.approx(0.5 / 0.5)  # max_k (f̄ − f_k)/q_k, f̄ = 0.7
    assert L2().best_response(f, vector(Q), lam * 1.001).min() > 0
    assert L2().best_response(f, vector(Q), lam * 0.999).min() == 0


@pytest.mark.parametrize("regularizer", [KL(), EntropicOT(), EntropicOT(nu=5.0)])
@pytest.mark.parametrize("prior", [None, Q])
def test_the_named_lam_is_the_smallest_that_is_enough(regularizer, prior):
    f, q = vector([0.2, 0.9, 1.0]), vector(prior or [1 / 3] * 3)
    lam = lam_keeping_all_in_play(regularizer, f, prior)

    def played(lam):
        return float(effective_number(regularizer.best_response(f, q, lam)))

    assert played(lam) == pytest.approx(1.05, abs=1e-6)
    assert all(played(lam * share) < 1.05 for share in (0.999, 0.5, 0.1, 0.01))


def test_no_lam_is_named_where_none_helps():
    assert lam_keeping_all_in_play(NoRegularizer(), [1.0, 2.0]) is None
    assert lam_keeping_all_in_play(L2(), [1.0, 2.0], [0.0, 1.0]) is None
    assert lam_keeping_all_in_play(KL(), [1.0, 2.0], [0.0, 1.0]) is None


def test_any_lam_does_when_the_losses_are_equal():
    assert lam_keeping_all_in_play(L2(), [1.0, 1.0]) == 0
    assert lam_keeping_all_in_play(KL(), [1.0, 1.0]) == 0
    # A domain that the prior leaves out is in play if its loss stands out.
    assert lam_keeping_all_in_play(L2(), [1.0, 1.0, 2.0], [0.5, 0.5, 0.0]) == pytest.approx(2 / 3)
