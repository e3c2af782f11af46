"""The loop: every configuration of every method on the same batches of the same domains."""

import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from robustmd.adversary import Adversary
from robustmd.studies.parallel import Lanes
from robustmd.studies.planted.domains import RIDGE, Optimum, Sample, Setting
from robustmd.studies.planted.methods import Method
from robustmd.training.data import stream

BATCH = 200  # examples an iteration, ⌊200/K⌋ of every domain, with replacement
_BLOCK = 256  # iterations whose batches are drawn at once


class Task(NamedTuple):
    """One seed's training set of one setting."""

    setting: Setting
    seed: int
    train: Sample
    optimum: Optimum


class Trained(NamedTuple):
    """What one method's configurations became, C of them on B tasks.

    Attributes:
        last: w_T [B, C, d], after the last step.
        mean: w̄ = (1/T) Σ_t w_t [B, C, d].
        mean_weights: p̄ = (1/T) Σ_t p_t [B, C, K].
    """

    last: np.ndarray
    mean: np.ndarray
    mean_weights: np.ndarray


def train(tasks: Sequence[Task], methods: Sequence[Method], iterations: int) -> list[Trained]:
    """Trains every configuration of every method on every task, from w = 0.

        w_{t+1} = w_t − η_t Σ_k p_t^k ∇f̂_k(w_t),    η_t = η ½(1 + cos(π t/T)), t = 0 … T − 1

    Args:
        tasks: of one number of domains K.
        methods: what to train.
        iterations: T ≥ 1.
    """
    with torch.no_grad():
        teams = [_Team(method, tasks, iterations) for method in methods]
        batches = draw_batches(tasks)
        for t in range(iterations):
            signed = next(batches)
            decay = (1 + math.cos(math.pi * t / iterations)) / 2
            for team in teams:
                team.step(signed, decay)
        return [team.trained(iterations) for team in teams]


class Player(nn.Module):
    """An adversary as one of many lanes."""

    def __init__(self, adversary: Adversary) -> None:
        super().__init__()
        self.adversary = adversary

    def forward(self, losses: Tensor) -> None:
        """Answers its losses [K]."""
        self.adversary.update(losses)


class _Team:
    """All configurations of one method, own values × rates, on all tasks."""

    def __init__(self, method: Method, tasks: Sequence[Task], iterations: int) -> None:
        self.num_rates = len(method.rates)
        self.weighs = method.example().weighs
        K, d = tasks[0].setting.num_domains, tasks[0].train.signed.shape[2]
        facts = [(task.setting.sizes().tolist(), task.optimum.alone.tolist()) for task in tasks]
        given = [one for one in facts for _ in method.rates]
        self.lanes = [
            Lanes([Player(method.adversary(own, iterations, *one)) for one in given])
            for own in method.own
        ]
        rates = method.rates * len(method.own)
        self.rates = torch.tensor(rates, dtype=torch.float64)[:, None]
        self.w = torch.zeros(len(tasks), len(rates), d, dtype=torch.float64)
        self.w_sum = torch.zeros_like(self.w)
        self.p_sum = torch.zeros(len(tasks), len(rates), K, dtype=torch.float64)

    def step(self, signed: Tensor, decay: float) -> None:
        """One iteration on the batches y x [B, K, m, d]."""
        B, K, m, d = signed.shape
        flat = signed.view(B, K * m, d)
        margins = flat @ self.w.transpose(1, 2)  # [B, K·m, C]
        f = logsigmoid(margins).view(B, K, m, -1).mean(dim=2).neg_().transpose(1, 2)
        f = f + RIDGE / 2 * self.w.square().sum(dim=2, keepdim=True)  # [B, C, K]
        before = self._weights(B)
        for lanes, losses in zip(self.lanes, f.split(self.num_rates, dim=1), strict=True):
            lanes(losses.flatten(0, 1))
        p = self._weights(B) if self.weighs == "current" else before
        pull = torch.sigmoid(-margins).view(B, K, m, -1) * p.transpose(1, 2).unsqueeze(2) / m
        gradient = RIDGE * self.w - pull.view(B, K * m, -1).transpose(1, 2) @ flat
        self.w_sum += self.w
        self.p_sum += p
        self.w = self.w - decay * self.rates * gradient

    def trained(self, iterations: int) -> Trained:
        w, p = self.w_sum / iterations, self.p_sum / iterations
        return Trained(self.w.numpy(), w.numpy(), p.numpy())

    def _weights(self, num_tasks: int) -> Tensor:
        """p_t [B, C, K], a copy."""
        own = [
            lanes.state["adversary.p"].view(num_tasks, self.num_rates, -1) for lanes in self.lanes
        ]
        return torch.cat(own, dim=1)


def draw_batches(tasks: Sequence[Task]) -> Iterator[Tensor]:
    """Every iteration's y x [B, K, m, d]. Tasks of one seed draw the same places of a domain."""
    K = tasks[0].setting.num_domains
    m = max(1, BATCH // K)
    sizes = torch.from_numpy(np.stack([task.setting.sizes() for task in tasks]))
    N = int(sizes.max())
    padded = [
        np.pad(task.train.signed, ((0, 0), (0, N - task.train.signed.shape[1]), (0, 0)))
        for task in tasks
    ]
    rows = torch.from_numpy(np.concatenate(padded)).flatten(0, 1)
    first = (torch.arange(len(tasks) * K) * N).view(len(tasks), K, 1)
    seeds = sorted({task.seed for task in tasks})
    whose = torch.tensor([seeds.index(task.seed) for task in tasks])
    for block in count():
        streams = [stream(seed, "batches", block=block) for seed in seeds]
        drawn = np.stack([one.random((_BLOCK, K, m)) for one in streams], axis=1)
        for places in torch.from_numpy(drawn):
            index = first + (places[whose] * sizes.unsqueeze(2)).long()
            yield rows[index.flatten()].view(*index.shape, -1)
