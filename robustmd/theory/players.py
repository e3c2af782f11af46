"""Many adversaries of one rule, moved together: the package's updates with a dimension for lanes.

`robustmd.adversary` moves one adversary; the study has hundreds of runs to move at once. Each rule
here is built from the package's adversaries, one a lane, takes their constants, and does what their
`update` does with [n, K] in place of [K]. tests/theory holds the two equal step by step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robustmd.adversary import (
    L2,
    Adversary,
    BestResponse,
    MirrorAscent,
    MultiplicativeWeights,
    NoRegularizer,
    ProjectedAscent,
    project_simplex,
)
from robustmd.adversary.steps import TheoryStep


class Plays(NamedTuple):
    """`robustmd.adversary.Play` for n lanes."""

    losses: Tensor  # f̂ᵗ [n, K]
    payoff: Tensor  # p_t·f̂ᵗ − (λ/2) D(p_t‖q), [n]
    direction: Tensor  # ĥᵗ [n, K]


class Players:
    """n adversaries at iteration t.

    Attributes:
        p: p_t [n, K].
        rule: the package's adversary of lane 0: for what all lanes share.
    """

    def __init__(self, adversaries: Sequence[Adversary]) -> None:
        self.rule: Any = adversaries[0]
        self.prior = self.rule.prior
        self.lam = float(getattr(self.rule, "lam", 1.0))
        self.regularizer = getattr(self.rule, "regularizer", None) or NoRegularizer()
        self.p = torch.stack([adversary.p for adversary in adversaries])
        self.t = 0

    def update(self, f: Tensor) -> Plays:
        """p_t becomes p_{t+1} in answer to the losses f [n, K]."""
        self.t += 1
        direction = self._direction(f)
        play = Plays(f, self.payoff(f), direction)
        self.p = self._move(f, direction)
        return play

    def payoff(self, f: Tensor) -> Tensor:
        """p_t·f − (λ/2) D(p_t‖q), [n], for losses f [n, K]."""
        return (self.p * f).sum(dim=1) - self.lam / 2 * self._divergence()

    def keep(self, n: int) -> None:
        """Drop all but the first n lanes."""
        self.p = self.p[:n]

    def _direction(self, f: Tensor) -> Tensor:
        return f

    def _divergence(self) -> Tensor | float:
        return 0.0

    def _move(self, f: Tensor, direction: Tensor) -> Tensor:
        raise NotImplementedError


class ProjectedAscentPlayers(Players):
    """p_{t+1} = Π_Δ(p_t + ĥᵗ/(λ(t + c))) with L2."""

    def __init__(self, adversaries: Sequence[ProjectedAscent]) -> None:
        super().__init__(adversaries)
        self.c = _constants(adversaries)

    def _direction(self, f: Tensor) -> Tensor:
        return self.regularizer.ascent_direction(f, self.p, self.prior, self.lam)

    def _divergence(self) -> Tensor:
        return (self.p - self.prior).square().sum(dim=1)

    def _move(self, f: Tensor, direction: Tensor) -> Tensor:
        return project_simplex(self.p + direction / (self.lam * (self.t + self.c)))

    def keep(self, n: int) -> None:
        super().keep(n)
        self.c = self.c[:n]


class MirrorAscentPlayers(Players):
    """log(p/q) ← log(p/q) + 2ĥᵗ/(λ(t + c)), normalised, with KL and a prior without zeros."""

    def __init__(self, adversaries: Sequence[MirrorAscent]) -> None:
        super().__init__(adversaries)
        self.c = _constants(adversaries)
        self.log_prior = self.prior.log()
        self.log_ratio = self.p.log() - self.log_prior

    def _direction(self, f: Tensor) -> Tensor:
        return f - self.lam / 2 * self.log_ratio

    def _divergence(self) -> Tensor:
        return (self.p * self.log_ratio).sum(dim=1)

    def _move(self, f: Tensor, direction: Tensor) -> Tensor:
        moved = self.log_ratio + direction / (self.lam / 2 * (self.t + self.c))
        log_p = torch.log_softmax(moved + self.log_prior, dim=1)
        self.log_ratio = log_p - self.log_prior
        return log_p.exp()

    def keep(self, n: int) -> None:
        super().keep(n)
        self.c, self.log_ratio = self.c[:n], self.log_ratio[:n]


class MultiplicativePlayers(Players):
    """p_{t+1} ∝ p_t exp(η_p f̂ᵗ)."""

    def __init__(self, adversaries: Sequence[MultiplicativeWeights]) -> None:
        super().__init__(adversaries)
        self.eta = torch.stack([adversary.eta for adversary in adversaries]).unsqueeze(1)
        self.log_p = self.p.log()

    def _move(self, f: Tensor, direction: Tensor) -> Tensor:
        self.log_p = torch.log_softmax(self.log_p + self.eta * f, dim=1)
        return self.log_p.exp()

    def keep(self, n: int) -> None:
        super().keep(n)
        self.eta, self.log_p = self.eta[:n], self.log_p[:n]


class BestResponsePlayers(Players):
    """p = argmax p·f − (λ/2) D(p‖q), with L2 or without a regularizer."""

    def _divergence(self) -> Tensor | float:
        if isinstance(self.regularizer, NoRegularizer):
            return 0.0
        return (self.p - self.prior).square().sum(dim=1)

    def _move(self, f: Tensor, direction: Tensor) -> Tensor:
        if isinstance(self.regularizer, NoRegularizer):
            largest = (f == f.amax(dim=1, keepdim=True)).to(f.dtype)
            return largest / largest.sum(dim=1, keepdim=True)
        return self.regularizer.best_response(f, self.prior, self.lam)


def players(adversaries: Sequence[Adversary]) -> Players:
    """The adversaries, all of one rule with the same λ and prior, as one. ValueError otherwise."""
    rule = adversaries[0]
    kinds = {(type(one), tuple(one.q), getattr(one, "lam", None)) for one in adversaries}
    if len(kinds) > 1:
        raise ValueError("adversaries differ in rule, prior or lam; all must be alike.")
    if isinstance(rule, ProjectedAscent) and isinstance(rule.regularizer, L2):
        return ProjectedAscentPlayers(adversaries)  # type: ignore[arg-type]
    if isinstance(rule, MirrorAscent) and min(rule.q) > 0:
        return MirrorAscentPlayers(adversaries)  # type: ignore[arg-type]
    if isinstance(rule, MultiplicativeWeights) and min(rule.q) > 0:
        return MultiplicativePlayers(adversaries)  # type: ignore[arg-type]
    if isinstance(rule, BestResponse) and isinstance(rule.regularizer, (L2, NoRegularizer)):
        return BestResponsePlayers(adversaries)
    raise ValueError(f"adversaries are {type(rule).__name__}; the study has no lanes for it.")


def _constants(adversaries: Sequence[Any]) -> Tensor:
    """c of every lane's 1/(m(t + c)), [n, 1]."""
    steps = [adversary.step for adversary in adversaries]
    if not all(isinstance(step, TheoryStep) for step in steps):
        raise ValueError("step is 'constant'; the study has lanes for 'theory' only.")
    return torch.stack([step.c for step in steps]).unsqueeze(1)
