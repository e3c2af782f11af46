"""The loop is plain descent against the package's adversaries; the methods and their budgets."""

import numpy as np
import pytest
import torch

from robustmd.registry import METHODS
from robustmd.studies.planted.descent import Task, draw_batches, train
from robustmd.studies.planted.domains import RIDGE, Setting, draw, solve_optimum
from robustmd.studies.planted.methods import FAMILIES, Method, methods_compared

BY_NAME = {method.name: method for method in methods_compared()}


def task_of(setting: Setting, seed: int = 0) -> Task:
    train_set = draw(setting, seed).train
    return Task(setting, seed, train_set, solve_optimum(train_set))


def adversary_of(method: Method, own, task: Task, iterations: int):
    sizes, alone = task.setting.sizes().tolist(), task.optimum.alone.tolist()
    return method.adversary(own, iterations, sizes, alone)


@pytest.mark.parametrize("name", ["opt", "groupdro", "vrex", "minimax"])
def test_the_loop_is_descent_on_the_weighted_loss(name, setting):
    """One configuration replayed with autograd and the package's adversary alone."""
    T, task = 30, task_of(setting, seed=4)
    method = Method(METHODS[name], BY_NAME[name].own[1:3], (0.3, 1.0))
    (found,) = train([task_of(setting, seed=1), task], [method], T)
    adversary = adversary_of(method, method.own[1], task, T)
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
    for name, method in BY_NAME.items():
        assert len(set(method.configurations())) == 8
        assert (method.own == ({},)) == (not METHODS.flag(name, "learns"))


def test_what_is_compared_comes_from_the_methods_own_classes():
    families = {family: [] for family in FAMILIES}
    for method in BY_NAME.values():
        families[method.family()].append(method.name)
    fixed, without_memory, ascents, regularised = families.values()
    assert fixed == ["even", "erm"]
    assert without_memory == ["term", "cvar", "topk", "vrex"]
    assert ascents == ["minimax", "groupdro", "afl"]
    assert regularised == ["opt", "ot", "kl", "regret", "optimistic"]
    assert BY_NAME["minimax"].own[0] == {"step": "constant", "eta": 0.01}
    assert BY_NAME["groupdro"].configurations()[2] == "eta=0.03, adjustment=1, lr=0.3"


def test_a_share_of_the_domains_becomes_topks_k():
    task, topk = task_of(Setting(10, mean_size=20)), BY_NAME["topk"]
    assert [adversary_of(topk, own, task, 10).k for own in topk.own] == [1, 3, 5, 8]
    assert topk.configurations()[2] == "share=0.25, lr=0.3"
