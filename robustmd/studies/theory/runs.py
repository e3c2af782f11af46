"""The study's loop: Algorithms 1 and 2 for every horizon and seed at once, one run a lane."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from robustmd.adversary import Adversary, Play, RegretMeter
from robustmd.studies.lanes import Lanes
from robustmd.studies.parallel import one_thread
from robustmd.studies.streams import stream
from robustmd.studies.theory.problems import Problem

_BLOCK = 256  # iterations whose batches are drawn at once


@dataclass(frozen=True)
class Outcome:
    """One run of T iterations.

    Attributes:
        T: iterations.
        gradient: (1/T) Σ_t ‖Σ_k p_t^k ∇f_k(W_t)‖², on all examples; with a best response p_t it
            is (1/T) Σ_t ‖∇F(W_t)‖² (Danskin).
        p_gap: max_p (1/T) Σ_t L(p, W_t) − (1/T) Σ_t L(p_t, W_t), f on all examples.
        regret: the same with every iteration's mini-batch f̂ᵗ in place of f; None: not played on f̂.
        regret_bound: what is proved for `regret` at μ = `mu`, per iteration; None: nothing is.
        mu: μ_obs = max_t ‖ĥᵗ‖ in the regularizer's dual norm.
        sigma: max_t ‖ĝ_t‖₂.
        gamma: max_t ‖f̂ᵗ‖₂.
        radius: max_t ‖W_t‖₂.
        mean_model: W̄ = (1/T) Σ_t W_t [P].
        mean_weights: p̄ = (1/T) Σ_t p_t [K].
    """

    T: int
    gradient: float
    p_gap: float
    regret: float | None
    regret_bound: float | None
    mu: float
    sigma: float
    gamma: float
    radius: float
    mean_model: np.ndarray
    mean_weights: np.ndarray


class _Player(nn.Module):
    """A run's adversary, and its regret on the batches it answers and on all examples."""

    def __init__(self, adversary: Adversary) -> None:
        super().__init__()
        self.adversary = adversary
        self.played = RegretMeter.of(adversary)
        self.exact = RegretMeter.of(adversary)

    def forward(self, losses: Tensor) -> None:
        """Answers one iteration's f and f̂, [2, K]."""
        f, batch_f = losses
        adversary, game = self.adversary, self.exact
        if adversary.feeds_on == "dataset":
            play = adversary.update(f)
        payoff, _ = game.regularizer.evaluate(f, adversary.p, adversary.prior, game.lam)
        if adversary.feeds_on == "batch":
            play = adversary.update(batch_f)
            self.played.update(play)
        game.update(Play(f, payoff, None, play.counts))


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
        longest_first = sorted(horizons, reverse=True)
        finished: list[list[Outcome]] = []
        with one_thread(), torch.no_grad():
            moving = _Lanes(self, longest_first, seeds)
            batches = draw_batches(self.problem, seeds)
            for t in range(1, longest_first[0] + 1):
                left = len(longest_first) - len(finished)
                moving.step(next(batches).repeat(left, 1))
                if t == longest_first[left - 1]:  # the shortest of the horizons is done
                    finished.append(moving.finish(len(seeds)))
        return finished


class _Lanes:
    """The runs at iteration t, those of the longest T first; sums and maxima are one row a run."""

    def __init__(self, runs: Runs, horizons: Sequence[int], seeds: Sequence[int]) -> None:
        self.problem = runs.problem
        self.players = [_Player(runs.adversary(T)) for T in horizons for _ in seeds]
        self.lanes = Lanes(self.players)
        self.on_dataset = self.players[0].adversary.feeds_on == "dataset"
        W = torch.stack([self.problem.start(seed) for seed in seeds]).repeat(len(horizons), 1)
        steps = torch.tensor([runs.model_step(T) for T in horizons], dtype=W.dtype)
        self.state = {
            "W": W,
            "step": steps.repeat_interleave(len(seeds)).unsqueeze(1),
            "W_sum": torch.zeros_like(W),
            "p_sum": torch.zeros_like(self._p),
            **{name: W.new_zeros(len(W)) for name in ("gradient", "sigma", "gamma", "radius")},
        }

    @property
    def _p(self) -> Tensor:
        return self.lanes.state["adversary.p"]

    def step(self, shares: Tensor) -> None:
        """One iteration of all runs on batches [n, K·N]; σ, γ and the radius are kept squared."""
        state = self.state
        point = self.problem.evaluate(state["W"], shares)
        losses = torch.stack([point.losses, point.batch_losses], dim=1)
        if self.on_dataset:
            self.lanes(losses)
        g, batch_g = point.gradients(self._p)
        state["W_sum"] += state["W"]
        state["p_sum"] += self._p
        state["gradient"] += g.square().sum(dim=1)
        self._raise("sigma", batch_g)
        self._raise("gamma", point.batch_losses)
        self._raise("radius", state["W"])
        if not self.on_dataset:
            self.lanes(losses)
        state["W"] = state["W"] - state["step"] * batch_g

    def finish(self, num_seeds: int) -> list[Outcome]:
        """The last runs' outcomes; they leave."""
        n = len(self.state["W"]) - num_seeds
        outcomes = [self._outcome(lane) for lane in range(n, n + num_seeds)]
        self.state = {name: value[:n].clone() for name, value in self.state.items()}
        self.lanes.keep(n)
        return outcomes

    def _outcome(self, lane: int) -> Outcome:
        player, state = self.players[lane], self.state
        self.lanes.put_back(lane, player)
        T = int(player.exact.steps)
        played = player.played.summary(player.adversary)
        return Outcome(
            T=T,
            gradient=float(state["gradient"][lane]) / T,
            p_gap=float(player.exact.measured()),
            regret=None if self.on_dataset else played["measured"],
            regret_bound=None if self.on_dataset else played["bound"],
            mu=played["mu"],
            sigma=float(state["sigma"][lane]) ** 0.5,
            gamma=float(state["gamma"][lane]) ** 0.5,
            radius=float(state["radius"][lane]) ** 0.5,
            mean_model=(state["W_sum"][lane] / T).numpy(),
            mean_weights=(state["p_sum"][lane] / T).numpy(),
        )

    def _raise(self, name: str, vectors: Tensor) -> None:
        largest = self.state[name]
        torch.maximum(largest, vectors.square().sum(dim=1), out=largest)


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
