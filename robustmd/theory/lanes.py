"""The study's loop: Algorithms 1 and 2 for every horizon and seed at once, one run a lane."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from robustmd.adversary import Adversary
from robustmd.theory.players import Players, players
from robustmd.theory.problem import Point, Problem
from robustmd.theory.streams import stream
from robustmd.theory.tally import Outcome, Tally
from robustmd.theory.threads import one_thread

_BLOCK = 256  # iterations whose batches are drawn at once


@dataclass(frozen=True)
class Runs:
    """One method on one problem, for every horizon T and seed.

    Attributes:
        problem: f.
        adversary: T ↦ the package's adversary for a run of T iterations.
        model_step: T ↦ η_w of such a run, constant over it.
    """

    problem: Problem
    adversary: Callable[[int], Adversary]
    model_step: Callable[[int], float]

    def run(self, horizons: Sequence[int], seeds: Sequence[int]) -> list[list[Outcome]]:
        """Outcomes [horizon][seed]. A seed fixes W₁ and the batches, alike for every T and method.

        W_{t+1} = W_t − η_w ĝ_t, ĝ_t = Σ_k p_t^k ∇f̂_k^t(W_t); then p_{t+1} from the same f̂ᵗ(W_t).
        An adversary that feeds on the data set answers f(W_t) first, as Theorem 4 has it.
        """
        with one_thread(), torch.inference_mode():
            return self._run(sorted(horizons, reverse=True), seeds)[::-1]

    def _run(self, longest_first: list[int], seeds: Sequence[int]) -> list[list[Outcome]]:
        S = len(seeds)
        adversaries = [self.adversary(T) for T in longest_first for _ in seeds]
        moving = players(adversaries)
        W = torch.stack([self.problem.start(seed) for seed in seeds]).repeat(len(longest_first), 1)
        steps = [self.model_step(T) for T in longest_first]
        step = torch.tensor(steps, dtype=W.dtype).repeat_interleave(S).unsqueeze(1)
        tally = Tally(W, moving)
        finished: list[list[Outcome]] = []
        batches = draw_batches(self.problem, seeds)
        for t in range(1, longest_first[0] + 1):
            active = len(longest_first) - len(finished)
            point = self.problem.evaluate(W, next(batches).repeat(active, 1))
            W = W - step * _round(point, W, moving, tally)
            if t < longest_first[active - 1]:
                continue
            n = (active - 1) * S  # the shortest of the horizons is done
            finished.append([tally.outcome(i, adversaries[i]) for i in range(n, n + S)])
            W, step = W[:n].clone(), step[:n]
            moving.keep(n)
            tally.keep(n)
        return finished[::-1]


def _round(point: Point, W: Tensor, moving: Players, tally: Tally) -> Tensor:
    """Iteration t: score it, move p, return ĝ_t."""
    on_dataset = moving.rule.feeds_on == "dataset"
    if on_dataset:
        moving.update(point.losses)
    g, batch_g = point.gradients(moving.p)
    tally.count(W, moving, point, g, batch_g)
    if not on_dataset:
        tally.count_play(moving.update(point.batch_losses))
    return batch_g


def draw_batches(problem: Problem, seeds: Sequence[int]) -> Iterator[Tensor]:
    """Every iteration's `shares` [S, K·N], a row a seed: m examples a domain, with replacement."""
    K, N, m = problem.num_domains, problem.num_examples, problem.batch_size
    offsets = np.arange(K)[:, None] * N
    block = 0
    while True:
        drawn = [
            stream(seed, "batches", block).integers(N, size=(_BLOCK, K, m)) + offsets
            for seed in seeds
        ]
        indices = torch.from_numpy(np.stack(drawn, axis=1)).flatten(2)  # [_BLOCK, S, K·m]
        shares = torch.zeros(_BLOCK, len(seeds), K * N, dtype=torch.float64)
        shares.scatter_add_(2, indices, torch.full_like(indices, 1 / m, dtype=shares.dtype))
        yield from shares
        block += 1
