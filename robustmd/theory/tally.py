"""What a run is measured by, summed while it goes, for many lanes at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robustmd.adversary import Adversary, RegretMeter
from robustmd.theory.players import Players, Plays
from robustmd.theory.problem import Point


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


class Tally:
    """Sums and maxima over the iterations so far, one row or entry a lane."""

    def __init__(self, W: Tensor, moving: Players) -> None:
        self.dual_norm = moving.regularizer.dual_norm
        self.steps = 0
        zero, zeros = W.new_zeros(len(W)), torch.zeros_like(moving.p)
        self.sums: dict[str, Tensor] = {
            "model": torch.zeros_like(W),
            "weights": zeros.clone(),
            "loss": zeros.clone(),
            "payoff": zero.clone(),
            "gradient": zero.clone(),
            "batch_loss": zeros.clone(),
            "batch_payoff": zero.clone(),
        }
        self.maxima: dict[str, Tensor] = {
            name: zero.clone() for name in ("sigma", "radius", "gamma", "mu")
        }

    def count(self, W: Tensor, moving: Players, point: Point, g: Tensor, batch_g: Tensor) -> None:
        """Iteration t at W_t and p_t; the maxima of ‖ĝ‖ and ‖W‖ are kept squared."""
        self.steps += 1
        self.sums["model"] += W
        self.sums["weights"] += moving.p
        self.sums["loss"] += point.losses
        self.sums["payoff"] += moving.payoff(point.losses)
        self.sums["gradient"] += g.square().sum(dim=1)
        self._raise("sigma", batch_g.square().sum(dim=1))
        self._raise("radius", W.square().sum(dim=1))
        self._raise("gamma", point.batch_losses.square().sum(dim=1))

    def count_play(self, play: Plays) -> None:
        """The adversary's side of iteration t, on the mini-batch."""
        self.sums["batch_loss"] += play.losses
        self.sums["batch_payoff"] += play.payoff
        self._raise("mu", torch.linalg.vector_norm(play.direction, ord=self.dual_norm, dim=1))

    def keep(self, n: int) -> None:
        """Drop all but the first n lanes."""
        self.sums = {name: value[:n] for name, value in self.sums.items()}
        self.maxima = {name: value[:n] for name, value in self.maxima.items()}

    def outcome(self, lane: int, adversary: Adversary) -> Outcome:
        """Lane's measures now; `adversary` is the package's, for its regularizer and its bound."""
        T = self.steps
        exact = self._meter(lane, adversary, "loss", "payoff")
        played = self._meter(lane, adversary, "batch_loss", "batch_payoff").summary(adversary)
        on_batches = adversary.feeds_on == "batch"
        return Outcome(
            T=T,
            gradient=float(self.sums["gradient"][lane]) / T,
            p_gap=float(exact.measured()),
            regret=played["measured"] if on_batches else None,
            regret_bound=played["bound"] if on_batches else None,
            mu=played["mu"],
            sigma=float(self.maxima["sigma"][lane]) ** 0.5,
            gamma=float(self.maxima["gamma"][lane]) ** 0.5,
            radius=float(self.maxima["radius"][lane]) ** 0.5,
            mean_model=(self.sums["model"][lane] / T).numpy(),
            mean_weights=(self.sums["weights"][lane] / T).numpy(),
        )

    def _raise(self, name: str, values: Tensor) -> None:
        torch.maximum(self.maxima[name], values, out=self.maxima[name])

    def _meter(self, lane: int, adversary: Adversary, losses: str, payoff: str) -> RegretMeter:
        """The package's own meter, holding one lane's sums."""
        meter: Any = RegretMeter.of(adversary)
        meter.loss_sum.copy_(self.sums[losses][lane])
        meter.payoff_sum.copy_(self.sums[payoff][lane])
        meter.mu.copy_(self.maxima["mu"][lane])
        meter.steps.fill_(self.steps)
        return meter
