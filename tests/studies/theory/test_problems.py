"""Losses and gradients of the study's problems against their definitions."""

import pytest
import torch
from torch.func import jacrev

from robustmd.studies.theory.problems import Parabolas
from robustmd.studies.theory.runs import PARABOLAS, draw_batches, estimate_constants, gradient


@pytest.fixture(params=["logistic", "network"])
def problem(request: pytest.FixtureRequest):
    return request.getfixturevalue(request.param)


def by_hand(problem, w: torch.Tensor) -> torch.Tensor:
    """f(w) [K] from the textbook's formulas, one example at a time."""
    C = problem.num_classes
    losses = []
    for x, label in zip(problem.inputs, problem.label_rows.flatten(), strict=True):
        if hasattr(problem, "hidden"):
            U = w[: problem.split].view(problem.hidden, -1)
            V = w[problem.split :].view(C, -1)
            z = V[:, :-1] @ torch.tanh(U @ x) + V[:, -1]
        else:
            z = w.view(C, -1) @ x
        losses.append(torch.logsumexp(z, 0) - z[label])
    means = torch.stack(losses).view(problem.num_domains, -1).mean(1)
    return means + problem.ridge / 2 * w.square().sum()


def test_losses_are_their_definition(problem, models):
    W = models(problem)
    every_once = torch.full((4, problem.num_domains * 12), 1 / 12, dtype=torch.float64)
    losses, batch_losses = problem.evaluate(W, every_once)
    torch.testing.assert_close(losses, torch.stack([by_hand(problem, w) for w in W]))
    torch.testing.assert_close(batch_losses, losses)
    torch.testing.assert_close(torch.vmap(problem.losses)(W), losses)


def test_gradients_are_central_differences(problem, models):
    W = models(problem).requires_grad_()
    shares = next(draw_batches(problem, range(4)))
    p = torch.softmax(models(problem)[:, :3], dim=1)
    found = [gradient(p, losses, W) for losses in problem.evaluate(W, shares)]
    step = 1e-6
    for i in range(problem.num_parameters):
        ends = []
        for sign in (1, -1):
            moved = W.detach().clone()
            moved[:, i] += sign * step
            ends.append([(p * losses).sum(1) for losses in problem.evaluate(moved, shares)])
        for ours, above, below in zip(found, *ends, strict=True):
            due = (above - below) / (2 * step)
            torch.testing.assert_close(ours[:, i], due, rtol=1e-6, atol=1e-8)


def test_batches_are_fair_and_alike_for_one_seed(logistic):
    stream = draw_batches(logistic, [7, 8])
    many = torch.stack([next(stream) for _ in range(600)])  # more than two blocks
    torch.testing.assert_close(many.view(600, 2, 3, 12).sum(-1), torch.ones(600, 2, 3).double())
    expected = torch.full((2, 36), 1 / 12, dtype=torch.float64)
    torch.testing.assert_close(many.mean(0), expected, rtol=0, atol=0.02)  # sd 0.0056
    assert not torch.equal(many[:, 0], many[:, 1])
    alone = draw_batches(logistic, [8])
    assert all(torch.equal(next(alone)[0], many[t, 1]) for t in range(600))


def test_logistic_smoothness_bounds_every_hessian(logistic, models):
    bound = logistic.smoothness()
    W = models(logistic, 50) * torch.logspace(-2, 1, 50).unsqueeze(1).double()
    W[0] = 0  # where the bound is reached in a direction if two classes share all the mass
    losses = jacrev(jacrev(logistic.losses))
    largest = max(float(torch.linalg.eigvalsh(losses(w)).amax()) for w in W)
    assert bound / 3 < largest <= bound


def test_constants_bound_what_other_seeds_meet(problem):
    constants = estimate_constants(problem)
    seeds = range(10)
    W = torch.stack([problem.start(seed) for seed in seeds])
    p = torch.full((10, 3), 1 / 3, dtype=torch.float64)
    batches = draw_batches(problem, seeds)
    for _ in range(200):
        _, batch_f = problem.evaluate(W.requires_grad_(), next(batches))
        gradients = torch.stack(
            [gradient(k.expand(10, 3), batch_f, W) for k in torch.eye(3).double()]
        )
        assert gradients.norm(dim=-1).max() <= constants.sigma
        assert batch_f.norm(dim=1).max() <= constants.gamma
        W = W.detach() - 0.05 * torch.einsum("nk,knp->np", p, gradients)
    jacobian = jacrev(problem.losses)
    assert max(torch.linalg.matrix_norm(jacobian(w), ord=2) for w in W) <= constants.jacobian


def test_parabolas_constants_hold_on_the_interval():
    W = torch.linspace(-1, 1, 41).double().unsqueeze(1).requires_grad_()
    losses, _ = Parabolas().evaluate(W, torch.ones(41, 2).double())
    corners = [gradient(k.expand(41, 2), losses, W) for k in torch.eye(2).double()]
    jacobians = torch.stack(corners, dim=1)  # [41, 2, 1]
    assert jacobians.abs().max() <= PARABOLAS.sigma
    assert torch.linalg.matrix_norm(jacobians, ord=2).max() <= PARABOLAS.jacobian
    assert losses.norm(dim=1).max() <= PARABOLAS.gamma
    assert torch.allclose(jacobians.diff(dim=0) / 0.05, torch.tensor(PARABOLAS.smoothness).double())
