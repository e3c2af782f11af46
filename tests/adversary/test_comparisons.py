"""The methods of others against what their papers say, re-derived here."""

import math

import numpy as np
import pytest
import torch
from adversary.conftest import TINY, UNIT, vector
from hypothesis import given
from hypothesis import strategies as st

from robustmd.adversary import (
    FAMO,
    KL,
    L2,
    AgnosticAscent,
    CVaR,
    DoReMi,
    DynamicWeightAverage,
    EntropicOT,
    ExcessAscent,
    Fixed,
    GroupDRO,
    NoRegularizer,
    OptimisticAscent,
    ProjectedAscent,
    RegretMeter,
    Tilted,
    TopK,
    UncertaintyWeights,
    VarianceRisk,
    project_simplex,
)

F = [0.9, 0.7, 1.4]
Q = [0.3, 0.5, 0.2]
LOSSES = torch.rand(200, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 3
LOSS = st.floats(0, 20)


def answer(rule, losses):
    rule.update(losses)
    return rule.p.clone()


# --- group DRO --------------------------------------------------------------------------------


@pytest.mark.parametrize("adjustment", [0.0, 3.0])
def test_group_dros_trajectory_is_the_published_update(adjustment):
    sizes = [9, 100, 2500]
    rule = GroupDRO(3, eta=0.3, adjustment=adjustment, sizes=sizes)
    q = np.full(3, 1 / 3)
    for losses in LOSSES:
        q = q * np.exp(0.3 * (losses.numpy() + adjustment / np.sqrt(sizes)))  # Algorithm 1, line 4
        q = q / q.sum()  # line 5
        assert answer(rule, losses).tolist() == pytest.approx(q, rel=1e-10)


@pytest.mark.parametrize(
    ("adjustment", "published"),
    [
        (0.0, [0.24407756, 0.25125948, 0.25805843, 0.24660455]),
        (3.0, [0.23948145, 0.25231361, 0.26489520, 0.24330972]),
    ],
)
def test_group_dros_weights_are_those_of_the_authors_code(adjustment, published):
    """What compute_robust_loss (kohpangwei/group_DRO, loss.py, float32) has after these losses."""
    rule = GroupDRO(4, eta=0.01, adjustment=adjustment, sizes=[175, 9, 3, 53])
    for losses in ([0.31, 1.24, 2.05, 0.66], [0.22, 1.61, 0.92, 0.48], [0.17, 0.75, 3.3, 0.59]):
        rule.update(vector(losses))
    assert rule.p.tolist() == pytest.approx(published, rel=2e-7)


# --- agnostic federated learning --------------------------------------------------------------


def test_agnostic_ascent_is_projected_ascent_without_a_regularizer():
    rule = AgnosticAscent(3, eta=0.05)
    p = torch.full((3,), 1 / 3, dtype=torch.float64)
    played = []
    for losses in LOSSES:
        played.append(p)
        p = project_simplex(p + 0.05 * losses)
        assert torch.allclose(answer(rule, losses), p, rtol=0, atol=1e-13)
    assert torch.allclose(rule.average, torch.stack(played).mean(dim=0), rtol=0, atol=1e-14)


# --- tilted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tilt", [0.01, 1.0, 50.0])
def test_tilted_weights_are_kls_best_response(tilt):
    rule = Tilted(3, tilt, prior=Q)
    for losses in LOSSES[:20]:
        best = KL().best_response(losses, vector(Q), 2 / tilt)
        assert torch.allclose(answer(rule, losses), best, rtol=1e-13, atol=0)


@pytest.mark.parametrize("tilt", [-2.0, 0.0, 3.0])
def test_tilted_weights_are_the_gradient_of_the_tilted_loss(tilt):
    f = vector(F).requires_grad_()
    weighted = vector(Q) @ f if tilt == 0 else (vector(Q).log() + tilt * f).logsumexp(0) / tilt
    weighted.backward()
    assert torch.allclose(answer(Tilted(3, tilt, prior=Q), vector(F)), f.grad, rtol=1e-12, atol=0)


# --- conditional value at risk and the k largest ----------------------------------------------


def rounding_of_cvar(num_domains, alpha):
    """How far a weight of CVaR, and the sum of all of them, may be off.

    The masses of the worst j are off by e = (K − 1)u. What the last level gets, α less those masses
    times its share, is off by 3e + 4u, and by 2u more where q and α are rounded: (3K + 3)u, of α.
    That enters twice, in the level itself and in the sum that divides all, whose own roundings and
    the quotient's add (K + 4)u.
    """
    return UNIT * (2 * (3 * num_domains + 3) / alpha + num_domains + 4)


@given(losses=st.lists(LOSS, min_size=5, max_size=5), alpha=st.floats(0.01, 1))
def test_cvar_is_the_dual_of_rockafellar_and_uryasevs_minimum(losses, alpha):
    """max p·f over the set is min_z z + (1/α) Σ q_k max(f_k − z, 0), reached at one of the f_k."""
    f, q = vector(losses), vector([0.1, 0.3, 0.2, 0.25, 0.15])
    rule = CVaR(5, alpha, prior=q.tolist())
    p = answer(rule, f)
    assert p.min() >= 0
    rounding = rounding_of_cvar(5, alpha)
    assert (p - q / alpha).max() <= rounding
    least = min(float(z + (q * (f - z).clamp(min=0)).sum() / alpha) for z in f)
    # The minimum's terms are not negative: off by 10u of it, as p·f is by 10u of itself.
    slack = float(f.max()) * (rounding + 20 * UNIT) + TINY
    assert float(p @ f) == pytest.approx(least, rel=0, abs=slack)


@given(losses=st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0]), min_size=4, max_size=4))
def test_cvar_goes_from_the_maximum_to_even(losses):
    f, q = vector(losses), torch.full((4,), 0.25, dtype=torch.float64)
    maximum = NoRegularizer().best_response(f, q, 1.0)
    # Quarters and their sums are exact. A third is off by u of itself in `maximum`, and by 2u in
    # the other: 3 equal terms summed, the quotient.
    assert torch.allclose(answer(CVaR(4, 1e-9), f), maximum, rtol=0, atol=UNIT)
    assert torch.allclose(answer(CVaR(4, 0.25), f), maximum, rtol=0, atol=UNIT)
    assert torch.equal(answer(CVaR(4, 1.0), f), Fixed(4).p)
    assert torch.equal(answer(TopK(4, 1), f), maximum)
    assert torch.equal(answer(TopK(4, 4), f), Fixed(4).p)


@given(losses=st.lists(LOSS, min_size=7, max_size=7), k=st.integers(1, 7))
def test_top_k_is_the_mean_of_the_k_largest(losses, k):
    f = vector(losses)
    p = answer(TopK(7, k), f)
    # No term is negative: p is off by 2u, its products by u, sums of 7 by 6u, the mean by u.
    assert float(p @ f) == pytest.approx(float(f.topk(k).values.mean()), rel=16 * UNIT, abs=TINY)
    slack = rounding_of_cvar(7, k / 7) + 2 * UNIT  # and p's own
    assert torch.allclose(p, answer(CVaR(7, k / 7), f), rtol=0, atol=slack)


def test_domains_of_equal_loss_share_the_last_place():
    assert answer(TopK(4, 2), vector([1.0, 3.0, 1.0, 0.0])).tolist() == [0.25, 0.5, 0.25, 0.0]


# --- regret and optimism ----------------------------------------------------------------------


def test_a_domain_of_noise_rules_opt_but_not_the_excess():
    """Domain 0 cannot be better than log 10; it is at its best, and domain 1 is not."""
    losses = vector([math.log(10), 0.4])
    opt = ProjectedAscent(2, L2(), 0.1, c=0)
    excess = ExcessAscent(2, L2(), 0.1, c=0, reference=[math.log(10), 0.1])
    assert answer(opt, losses).tolist() == [1.0, 0.0]
    assert answer(excess, losses).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("regularizer", [L2, EntropicOT])
def test_the_excess_is_played_and_scored_as_opt_plays_losses_of_that_size(regularizer):
    reference, settings = [0.2, 0.1, 0.4], {"total_steps": 200, "prior": Q}
    excess = ExcessAscent(3, regularizer(), 0.5, reference=reference, **settings)
    opt = ProjectedAscent(3, regularizer(), 0.5, **settings)
    meters = RegretMeter.of(excess), RegretMeter.of(opt)
    for losses in LOSSES:
        meters[0].update(excess.update(losses))
        meters[1].update(opt.update(losses - vector(reference)))
        assert torch.equal(excess.p, opt.p)
    found = meters[0].summary(excess)
    assert found == meters[1].summary(opt)
    assert found["bound"] is None or found["measured"] <= found["bound"]


def test_optimism_by_hand():
    rule = OptimisticAscent(3, L2(), 5.0, c=2.0)
    p, last = np.full(3, 1 / 3), None
    for t, losses in enumerate(LOSSES[:50], start=1):
        f = losses.numpy()
        extrapolated = f if last is None else 2 * f - last
        moved = torch.from_numpy(p + (extrapolated - 5 * (p - 1 / 3)) / (5 * (t + 2)))
        p, last = project_simplex(moved).numpy(), f
        assert answer(rule, losses).tolist() == pytest.approx(p, abs=1e-12)


def test_optimism_takes_away_the_drift_from_a_saddle_point():
    """f = (w, −w), saddle at w = 0, p = (½, ½): plain descent and ascent spiral outwards."""

    def farthest(adversary):
        w, distances = 0.05, []
        for _ in range(600):
            slope = float(adversary.p[0] - adversary.p[1])
            adversary.update(vector([w, -w]))
            w -= 0.05 * slope
            distances.append(math.hypot(w, float(slope) / math.sqrt(2)))
        return max(distances[-200:]) / 0.05

    settings = {"lam": 1e-6, "step": "constant", "eta": 0.05}
    assert farthest(ProjectedAscent(2, L2(), **settings)) > 3
    assert farthest(OptimisticAscent(2, L2(), **settings)) < 1.1


# --- variance ---------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.0, 0.3, 100.0])
def test_variance_weights_are_the_gradient_of_mean_and_variance(beta):
    f = vector(F).requires_grad_()
    (f.mean() + beta * f.var(correction=0)).backward()
    p = answer(VarianceRisk(3, beta), vector(F))
    assert torch.allclose(p, f.grad, rtol=1e-12, atol=1e-12)
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    assert torch.equal(p, Fixed(3).p) == (beta == 0)


# --- balanced losses --------------------------------------------------------------------------

# The rows of weights were computed once, in float64, by the published code itself on these losses.
PUBLISHED = torch.tensor(
    [
        [0.31, 1.24, 2.05, 0.66],
        [0.22, 1.61, 0.92, 0.48],
        [0.17, 0.75, 3.3, 0.59],
        [0.4, 0.7, 0.8, 0.3],
        [0.2, 0.9, 1.1, 0.35],
        [0.1, 0.6, 1.5, 0.2],
    ],
    dtype=torch.float64,
)


def test_uncertainty_weights_are_those_of_torchjd():
    """UW of torchjd 0.18.0 (½ of the loss: SGD of 2η) before each of the six losses and after the
    last, over their sum; the authors' yaringal/multi-task-learning-example has the loss itself."""
    rule, expected = UncertaintyWeights(4, eta=0.3), [[0.25] * 4]
    expected += [
        [0.3076736464881235, 0.23276739073594568, 0.18255283388913549, 0.27700612888679527],
        [0.3469672193541393, 0.18162838042408327, 0.18254330402487315, 0.2888610961969043],
        [0.4086253968708844, 0.19311748141866134, 0.10471972923738666, 0.29353739247306765],
        [0.38807532041210624, 0.19082636500033762, 0.11121714746144105, 0.30988116712611513],
        [0.4080116989629936, 0.17281244880328017, 0.10892564389489037, 0.310250208338836],
        [0.4302591555912049, 0.16273122217038571, 0.09212011668806172, 0.31488950555034767],
    ]
    found = [rule.p.tolist(), *(answer(rule, losses).tolist() for losses in PUBLISHED)]
    assert np.abs(np.array(found) - expected).max() < 1e-12


def test_uncertainties_settle_where_each_weighs_its_loss_to_1():
    rule = UncertaintyWeights(3, eta=0.1)
    for _ in range(500):
        rule.update(vector(F))
    assert rule.s.exp().tolist() == pytest.approx(F)
    assert rule.p.argmax() == 1  # the smallest loss


def test_dynamic_averages_are_those_of_torchjd():
    """DWA of torchjd 0.18.0, as in lorenmt/mtan, in epochs of two batches, over K."""
    rule = DynamicWeightAverage(4, temperature=2.0, every=2)
    found = [answer(rule, losses).tolist() for losses in PUBLISHED]
    even = [0.25] * 4
    third = [0.2644830827722304, 0.1992235190767281, 0.30805462808498, 0.22823877006606139]
    fourth = [0.22770889593675964, 0.2935803966337725, 0.24032287145622602, 0.23838783597324184]
    expected = [even, even, even, third, third, fourth]  # after each batch: the next one's
    assert np.abs(np.array(found) - expected).max() < 1e-12


def test_famos_weights_are_those_of_the_authors_code():
    """Cranial-XIX/FAMO, famo.py: the gradient of get_weighted_loss in each loss, update being given
    the next row for the losses after the model's step; w_lr = 0.1, gamma = 0.001."""
    rule = FAMO(4, eta=0.1, gamma=0.001)
    expected = [
        [0.534497397365475, 0.1336243525742159, 0.08082643791219847, 0.25105181214811073],
        [0.5363760672046742, 0.0895210290830003, 0.1282638355661215, 0.24583906814620388],
        [0.5938618441831329, 0.17322382920667212, 0.034637980370502544, 0.19827634623969229],
        [0.27361087652068666, 0.1917224001569183, 0.14590042726059047, 0.3887662960618045],
        [0.48327376333644584, 0.1327219653351141, 0.0933455689520602, 0.29065870237637986],
        [0.556605815431299, 0.11654226052202576, 0.04061493066516289, 0.2862369933815123],
    ]
    found = []
    for losses, after in zip(PUBLISHED, [*PUBLISHED[1:], None], strict=True):
        found.append(answer(rule, losses).tolist())
        if after is not None:
            rule.look_back(after)
    assert np.abs(np.array(found) - expected).max() < 1e-12


def test_famo_takes_adams_steps():
    """The same over 60 batches, re-derived with torch's own softmax, autograd and Adam."""
    rule = FAMO(3, eta=0.05, gamma=0.01)
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([logits], lr=0.05, weight_decay=0.01)
    for losses, after in zip(LOSSES[:60], LOSSES[100:160], strict=True):
        expected = logits.detach().softmax(0) / (losses + 1e-8)
        assert torch.allclose(answer(rule, losses), expected / expected.sum(), rtol=0, atol=1e-10)
        rule.look_back(after)
        fallen = ((losses + 1e-8) / (after + 1e-8)).log()
        adam.zero_grad()
        (logits.softmax(0) @ fallen).backward()
        adam.step()


@pytest.mark.parametrize(
    "there", [{"present": torch.tensor([True, False, True])}, {"counts": torch.tensor([4, 0, 1])}]
)
def test_famo_passes_over_what_it_was_not_shown(there):
    """A domain that the batch lacks has not fallen, and losses that are not finite say nothing."""
    rule = FAMO(3, gamma=0.0)
    rule.update(vector([1.0, 2.0, 3.0]))
    before = {name: buffer.clone() for name, buffer in rule.state_dict().items()}
    rule.look_back(vector([0.5, torch.nan, 3.0]))
    assert all(torch.equal(buffer, before[name]) for name, buffer in rule.state_dict().items())
    rule.look_back(vector([1.0, torch.nan, 3.0]), **there)
    assert rule.moves == 1
    assert rule.logits.tolist() == [0.0] * 3
    rule.look_back(vector([0.5, 2.0, 3.0]))
    assert rule.logits[0] < rule.logits[1] == rule.logits[2]


# --- all of them ------------------------------------------------------------------------------


def test_which_rules_weigh_the_batch_they_have_just_seen(make_rule):
    """Those without memory, and group DRO and FAMO as published; only V-REx weighs negatively."""
    rule = make_rule()
    current = isinstance(rule, DoReMi | GroupDRO | Tilted | CVaR | TopK | VarianceRisk | FAMO)
    assert (rule.weighs == "current") == current
    assert rule.signed == isinstance(rule, VarianceRisk)
    if current and not isinstance(rule, DoReMi | GroupDRO | FAMO):
        first = answer(rule, vector([1.0, 5.0, 2.0, 0.1]))
        answer(rule, vector([9.0, 0.0, 0.0, 3.0]))
        assert torch.equal(answer(rule, vector([1.0, 5.0, 2.0, 0.1])), first)


def test_the_payoff_is_of_the_weights_that_the_iteration_takes(make_rule):
    rule = make_rule()
    f = vector([1.0, 5.0, 2.0, 0.1])
    before = rule.p.clone()
    play = rule.update(f)
    played = rule.p if rule.weighs == "current" else before
    if not hasattr(rule, "regularizer"):
        assert float(play.payoff) == pytest.approx(float(played @ f), rel=1e-12)
