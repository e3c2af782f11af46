"""The lanes are the package's adversaries, and the loop is plain descent against them."""

import numpy as np
import pytest
import torch

from robustmd.planted.descent import Task, draw_batches, train
from robustmd.planted.domains import Setting, draw
from robustmd.planted.lanes import Lanes
from robustmd.planted.losses import RIDGE
from robustmd.planted.methods import METHODS_COMPARED, Method
from robustmd.planted.optimum import solve_optimum
from robustmd.registry import METHODS

BY_NAME = {method.name: method for method in METHODS_COMPARED}


def task_of(setting: Setting, seed: int = 0) -> Task:
    train_set = draw(setting, seed).train
    return Task(setting, seed, train_set, solve_optimum(train_set))


def adversary_of(method: Method, task: Task, iterations: int, own: int = 0):
    sizes, alone = task.setting.sizes().tolist(), task.optimum.alone.tolist()
    return method.adversary(
        method.own[own], task.setting.num_domains, iterations, sizes=sizes, alone=alone
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_lanes_move_as_the_packages_adversary(name):
    """Exactly, for every own value, with sizes and references that differ between lanes."""
    tasks = [task_of(Setting(4, size_ratio=ratio, mean_size=30)) for ratio in (1.0, 5.0)]
    generator = torch.Generator().manual_seed(0)
    for own in range(len(BY_NAME[name].own)):
        alone = [adversary_of(BY_NAME[name], task, 60, own) for task in tasks]
        together = Lanes([adversary_of(BY_NAME[name], task, 60, own) for task in tasks])
        for step in range(60):
            f = torch.rand(2, 4, generator=generator, dtype=torch.float64) * 2
            if step % 7 == 0:
                f[:, 1:3] = 1.5  # a tie
            for adversary, losses in zip(alone, f, strict=True):
                adversary.update(losses)
            together.update(f)
            expected = torch.stack([adversary.p for adversary in alone])
            torch.testing.assert_close(together.p, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["opt", "groupdro", "vrex", "minimax"])
def test_the_loop_is_descent_on_the_weighted_loss(name, setting):
    """One configuration replayed with autograd and the package's adversary alone."""
    T, task = 30, task_of(setting, seed=4)
    method = Method(name, BY_NAME[name].own[1:3], (0.3, 1.0))
    (found,) = train([task_of(setting, seed=1), task], [method], T)
    adversary = adversary_of(method, task, T, own=1)
    batches = draw_batches([task])
    w, mean, mean_p = torch.zeros(10, dtype=torch.float64), 0.0, 0.0
    for t in range(T):
        w.requires_grad_()
        signed = next(batches)[0]
        f = -torch.nn.functional.logsigmoid(signed @ w).mean(dim=1) + RIDGE / 2 * (w @ w)
        if adversary.weighs == "current":
            adversary.update(f)
        p = adversary.p.clone()
        (slope,) = torch.autograd.grad(p @ f, w)
        if adversary.weighs == "next":
            adversary.update(f)
        mean, mean_p = mean + w.detach() / T, mean_p + p / T
        w = w.detach() - 1.0 * (1 + np.cos(np.pi * t / T)) / 2 * slope
    assert found.last[1, 3] == pytest.approx(w.numpy(), rel=1e-9)
    assert found.mean[1, 3] == pytest.approx(mean.numpy(), rel=1e-9)
    assert found.mean_weights[1, 3] == pytest.approx(mean_p.numpy(), rel=1e-9)


def test_batches_are_the_seeds_and_of_the_right_domain():
    small, large = Setting(2, mean_size=30, size_ratio=4.0), Setting(2, mean_size=40)
    tasks = [task_of(small, 3), task_of(large, 3), task_of(large, 8)]
    together = draw_batches(tasks)
    alone = [draw_batches([task]) for task in tasks]
    for _ in range(5):
        batch = next(together)
        assert batch.shape == (3, 2, 100, 10)
        for task, own, found in zip(tasks, alone, batch, strict=True):
            assert torch.equal(next(own)[0], found)
            for k, n in enumerate(task.setting.sizes()):
                pool = torch.from_numpy(task.train.signed[k, :n])
                distance = torch.cdist(found[k], pool).amin(dim=1)
                assert distance.max() < 1e-6  # drawn from this domain, never from the padding
    assert not torch.equal(batch[1], batch[2])


def test_every_method_has_the_same_budget():
    assert {method.budget for method in METHODS_COMPARED} == {8}
    for method in METHODS_COMPARED:
        words = {method.describe(c) for c in range(method.budget)}
        assert len(words) == method.budget
        assert (method.own == ({},)) == (not METHODS.flag(method.name, "learns"))


def test_a_share_of_the_domains_becomes_topks_k():
    task = task_of(Setting(10, mean_size=20))
    ks = [adversary_of(BY_NAME["topk"], task, 10, own).k for own in range(4)]
    assert ks == [1, 3, 5, 8]
