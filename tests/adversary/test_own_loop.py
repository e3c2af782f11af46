"""What a loop of one's own asks of an adversary: the weighted loss, in the order of the rule."""

import pytest
import torch

from robustmd.adversary import L2, Fixed, ProjectedAscent, domain_means

K = 4


def rows(count):
    torch.manual_seed(0)
    return torch.rand(count, K) * 3


def test_the_weighted_loss_has_the_weights_that_the_rule_means_for_this_batch(make_rule):
    ours, theirs = make_rule(), make_rule()
    for row in rows(4):
        losses = row.clone().requires_grad_()
        ours.weighted_loss(losses).backward()
        before = theirs.weights.clone()
        if theirs.feeds_on == "batch":
            theirs.update(row)
        used = theirs.weights if theirs.weighs == "current" else before
        assert torch.equal(losses.grad, used)
        assert torch.equal(ours.p, theirs.p)
        assert int(ours.steps) == int(theirs.steps)


@pytest.mark.parametrize("how", ["present", "counts"])
def test_an_absent_domain_adds_nothing_whatever_its_loss(how):
    adversary = ProjectedAscent(3, L2(), 0.1, total_steps=10)
    losses = torch.tensor([1.0, torch.nan, 2.0], requires_grad=True)
    there = {"present": torch.tensor([True, False, True]), "counts": torch.tensor([2, 0, 5])}
    loss = adversary.weighted_loss(losses, **{how: there[how]})
    loss.backward()
    torch.testing.assert_close(losses.grad, torch.tensor([1 / 3, 0.0, 1 / 3]))
    assert loss.item() == pytest.approx(1.0)
    assert adversary.weights.isfinite().all()


def test_a_loss_that_is_not_finite_stays_for_the_scaler_to_see_and_leaves_the_weights():
    adversary = ProjectedAscent(2, L2(), 0.1, total_steps=10)
    before = adversary.weights.clone()
    assert not adversary.weighted_loss(torch.tensor([torch.inf, 1.0])).isfinite()
    assert torch.equal(adversary.weights, before)
    assert int(adversary.skipped) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_losses_are_weighed_in_float32_at_least(dtype):
    adversary = Fixed(2, prior=[0.999, 0.001])
    losses = torch.tensor([1.0, 3.0], dtype=dtype, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = adversary.weighted_loss(losses, counts=torch.tensor([60000, 60000]))
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    assert loss.item() == pytest.approx(1.002, rel=1e-6)
    loss.backward()
    assert losses.grad.dtype == dtype
    assert int(adversary.skipped) == 0


def test_the_means_of_domains_and_their_counts():
    losses = torch.tensor([1.0, 2.0, 6.0, 4.0], requires_grad=True)
    means, counts = domain_means(losses, torch.tensor([2, 0, 2, 2]), 4)
    torch.testing.assert_close(means, torch.tensor([2.0, 0.0, 11 / 3, 0.0]))
    assert counts.tolist() == [1, 0, 3, 0]
    means.sum().backward()
    torch.testing.assert_close(losses.grad, torch.tensor([1 / 3, 1.0, 1 / 3, 1 / 3]))
