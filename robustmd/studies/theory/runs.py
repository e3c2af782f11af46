"""The study's loop: Algorithms 1 and 2 for every horizon and seed at once, each in its own lane;
and σ, γ, L, ‖J‖ and R of a problem, estimated on pilot runs and checked against every run later."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from robustmd.adversary import Adversary, Play, RegretMeter
from robustmd.studies.parallel import Lanes
from robustmd.studies.saddle import minimise_mixture
from robustmd.studies.theory.problems import Classifier, Logistic, Problem
from robustmd.training.data import stream

_BLOCK = 256  # iterations whose batches are drawn at once
LAM = 1.0  # λ of all experiments
PILOT_SEEDS = range(10_000, 10_020)  # the study's own seeds begin at 0
MARGIN = 1.1
_STEPS, _STEP_SIZE, _KEEP_EVERY = 300, 0.1, 20


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

    def run(self, horizons: Sequence[int], seeds: Sequence[int]) -> pd.DataFrame:
        """A line for every T and seed. A seed fixes W₁ and the batches, alike for every T.

        W_{t+1} = W_t − η_w ĝ_t, ĝ_t = Σ_k p_t^k ∇f̂_k^t(W_t); then p_{t+1} from the same f̂ᵗ(W_t).
        An adversary that feeds on the data set answers f(W_t) first, as Theorem 4 has it.

        | column       | of a run of T iterations                                                 |
        |--------------|--------------------------------------------------------------------------|
        | gradient     | mean ‖Σ_k p_t^k ∇f_k(W_t)‖², on all examples; with a best response p_t   |
        |              | it is the mean of ‖∇F(W_t)‖² (Danskin)                                   |
        | p_gap        | max_p mean L(p, W_t) − mean L(p_t, W_t), f on all examples               |
        | regret       | the same with the mini-batches' f̂ᵗ; NaN: not played on f̂                 |
        | regret_bound | what is proved for `regret` at μ = `mu`, per iteration; NaN: nothing is  |
        | mu           | μ_obs = max_t ‖ĥᵗ‖ in the regularizer's dual norm                        |
        | sigma        | max_t ‖ĝ_t‖₂; gamma: max_t ‖f̂ᵗ‖₂; radius: max_t ‖W_t‖₂                   |
        | mean_model   | W̄ = (1/T) Σ_t W_t [P]; mean_weights: p̄ = (1/T) Σ_t p_t [K]               |
        """
        left, lines = sorted(horizons, reverse=True), []
        with torch.no_grad():
            moving = _Moving(self, left, seeds)
            batches = draw_batches(self.problem, seeds)
            for t in range(1, left[0] + 1):
                moving.step(next(batches).repeat(len(left), 1))
                if t == left[-1]:
                    lines += moving.finish(seeds)
                    left.pop()
        return pd.DataFrame(lines).astype({"regret": float, "regret_bound": float})


class _Moving:
    """The runs at iteration t, those of the longest T first; sums and maxima have a row each."""

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
        state, W = self.state, self.state["W"].requires_grad_()
        with torch.enable_grad():
            f, batch_f = self.problem.evaluate(W, shares)
        losses = torch.stack([f, batch_f], dim=1).detach()
        if self.on_dataset:
            self.lanes(losses)
        g, batch_g = gradient(self._p, f, W), gradient(self._p, batch_f, W)
        state["W_sum"] += W.detach()
        state["p_sum"] += self._p
        state["gradient"] += g.square().sum(dim=1)
        met = {"sigma": batch_g, "gamma": losses[:, 1], "radius": W.detach()}
        for name, vectors in met.items():
            torch.maximum(state[name], vectors.square().sum(dim=1), out=state[name])
        if not self.on_dataset:
            self.lanes(losses)
        state["W"] = W.detach() - state["step"] * batch_g

    def finish(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
        """The lines of the last runs; they leave."""
        n = len(self.state["W"]) - len(seeds)
        lines = [{"seed": seed, **self._line(n + i)} for i, seed in enumerate(seeds)]
        self.state = {name: value[:n].clone() for name, value in self.state.items()}
        self.lanes.keep(n)
        return lines

    def _line(self, lane: int) -> dict[str, Any]:
        player, state = self.players[lane], self.state
        self.lanes.put_back(lane, player)
        T = int(player.exact.steps)
        played = player.played.summary(player.adversary)
        return {
            "T": T,
            "gradient": float(state["gradient"][lane]) / T,
            "p_gap": float(player.exact.measured()),
            "regret": None if self.on_dataset else played["measured"],
            "regret_bound": None if self.on_dataset else played["bound"],
            "mu": played["mu"],
            **{name: float(state[name][lane]) ** 0.5 for name in ("sigma", "gamma", "radius")},
            "mean_model": (state["W_sum"][lane] / T).numpy(),
            "mean_weights": (state["p_sum"][lane] / T).numpy(),
        }


def gradient(p: Tensor, losses: Tensor, W: Tensor) -> Tensor:
    """Σ_k p_k ∇f_k(W) [n, P] of every lane, for p and losses [n, K]."""
    return torch.autograd.grad(losses, W, p, retain_graph=True)[0]


def draw_batches(problem: Problem, seeds: Sequence[int]) -> Iterator[Tensor]:
    """Every iteration's `shares` [S, K·N], a row for each seed: m examples of each domain, with
    replacement."""
    K, N, m = problem.num_domains, problem.num_examples, problem.batch_size
    offsets = np.arange(K)[:, None] * N
    for block in count():
        streams = [stream(seed, "batches", block=block) for seed in seeds]
        drawn = [one.integers(N, size=(_BLOCK, K, m)) + offsets for one in streams]
        indices = torch.from_numpy(np.stack(drawn, axis=1)).flatten(2)  # [_BLOCK, S, K·m]
        shares = torch.zeros(_BLOCK, len(seeds), K * N, dtype=torch.float64)
        shares.scatter_add_(2, indices, torch.full_like(indices, 1 / m, dtype=shares.dtype))
        yield from shares


@dataclass(frozen=True)
class Constants:
    """What the theorems assume of a problem.

    | symbol | attribute  | what it bounds                                           |
    |--------|------------|----------------------------------------------------------|
    | σ      | sigma      | ‖∇f̂_k^t(W_t)‖₂ for all k and t, and so ‖ĝ_t‖₂             |
    | γ      | gamma      | ‖f̂ᵗ(W_t)‖₂ for all t                                     |
    | L      | smoothness | the spectral norm of every f_k's Hessian                 |
    | ‖J‖    | jacobian   | the spectral norm of the Jacobian of f                   |
    | R      | radius     | ‖W_t‖₂ and the norm of the minimisers; None: not needed  |
    """

    sigma: float
    gamma: float
    smoothness: float
    jacobian: float
    radius: float | None = None

    def l2_mu(self, num_domains: int) -> float:
        """μ ≥ ‖f̂ − λ(p − q)‖₂ for uniform q: γ + λ sqrt(1 − 1/K)."""
        return self.gamma + LAM * math.sqrt(1 - 1 / num_domains)


# for |w| ≤ 1, where every run stays: |f_k'(w)| = 2|w ∓ 1|, ‖f(w)‖ and ‖J‖ = sqrt(8w² + 8) are ≤ 4
PARABOLAS = Constants(sigma=4.0, gamma=4.0, smoothness=2.0, jacobian=4.0)


def estimate_constants(problem: Classifier) -> Constants:
    """1.1 × the largest values seen in pilot runs.

    Pilot runs are SGD on the even mixture, on other seeds than the study's. Their mini-batches give
    σ and γ; the Hessians and Jacobians on all examples, at every 20th iterate, L and ‖J‖. For the
    logistic problem L has a proof (`Logistic.smoothness`), and R is 1.1 × the largest norm of a
    minimiser of p·f over the simplex's corners and centre.
    """
    sigma = gamma = 0.0
    points = []
    W = torch.stack([problem.start(seed) for seed in PILOT_SEEDS])
    corners = torch.eye(problem.num_domains, dtype=W.dtype)
    batches = draw_batches(problem, PILOT_SEEDS)
    for _ in range(_STEPS):
        points.append(W)
        _, batch_f = problem.evaluate(W.requires_grad_(), next(batches))
        alone = [gradient(p.expand(len(W), -1), batch_f, W) for p in corners]
        gradients = torch.stack(alone)  # ∇f̂_k^t(W_t) [K, n, P]
        sigma = max(sigma, float(torch.linalg.vector_norm(gradients, dim=-1).amax()))
        gamma = max(gamma, float(torch.linalg.vector_norm(batch_f.detach(), dim=1).amax()))
        W = W.detach() - _STEP_SIZE * gradients.mean(dim=0)
    visited = torch.cat(points[::_KEEP_EVERY]).detach()
    jacobian = torch.linalg.matrix_norm(vmap(jacrev(problem.losses))(visited), ord=2).amax()
    if isinstance(problem, Logistic):
        smoothness = problem.smoothness()
        radius = MARGIN * _largest_minimiser(problem)
    else:
        hessians = vmap(jacrev(jacrev(problem.losses)), chunk_size=50)(visited)  # [n, K, P, P]
        smoothness = MARGIN * float(torch.linalg.eigvalsh(hessians).abs().amax())
        radius = None
    return Constants(MARGIN * sigma, MARGIN * gamma, smoothness, MARGIN * float(jacobian), radius)


def _largest_minimiser(problem: Logistic) -> float:
    K = problem.num_domains
    mixtures = np.vstack([np.eye(K), np.full(K, 1 / K)])
    minimisers = [
        minimise_mixture(problem.losses_and_jacobian, p, problem.num_parameters)[1]
        for p in mixtures
    ]
    return max(float(np.linalg.norm(W)) for W in minimisers)
