"""Rules that balance losses, from multi-task learning: none of them is after the worst case."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary

_FARTHEST = 50.0  # |s|: beyond losses of e⁻⁵⁰ and e⁵⁰, where exp(−s) f could overflow
_SMALLEST = 1e-8  # of a loss: the FAMO authors'
_DECAYS = 0.9, 0.999  # Adam's β₁, β₂, as in the FAMO authors' code


class UncertaintyWeights(Adversary):
    """Kendall, Gal and Cipolla, *Multi-Task Learning Using Uncertainty to Weigh Losses for Scene
    Geometry and Semantics* (CVPR 2018).

        min_{W,s} Σ_k exp(−s_k) f_k(W) + s_k,    s_k = log σ_k²
        s_{t+1} = s_t − η (1 − exp(−s_t) f̂ᵗ),    s_1 = 0,    p_t = exp(−s_t)/Σ_j exp(−s_{t,j})

    Gradient descent on s beside the model's. Where s has settled, exp(−s_k) = 1/f_k: the domain
    with the *smallest* loss has the largest weight. Published, the weights are not normalised:
    their sum, which grows as losses fall, is a factor of the learning rate, and is left out here.
    For losses ≥ 0; s stays within ±50.

    | symbol | argument    | range |
    |--------|-------------|-------|
    | K      | num_domains | ≥ 1   |
    | η      | eta         | > 0   |
    """

    s: Tensor

    def __init__(self, num_domains: int, *, eta: float = 0.01) -> None:
        super().__init__(num_domains)
        self.eta = arguments.positive("eta", eta)
        self.register_buffer("s", torch.zeros_like(self.p))

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        payoff = torch.dot(self.p, f)
        slope = 1 - self.s.neg().exp() * f
        self.s.sub_(slope, alpha=self.eta).clamp_(-_FARTHEST, _FARTHEST)
        return torch.softmax(-self.s, dim=0), payoff, None


class DynamicWeightAverage(Adversary):
    """DWA of Liu, Johns and Davison, *End-to-End Multi-Task Learning with Attention* (CVPR 2019).

        p = softmax(r/T),    r_k = L_k(e)/L_k(e − 1)

    L(e) [K] is the mean of the losses over epoch e, of `every` updates; the weights are those of
    the next epoch, and uniform in the first two. The domain whose loss falls slowest has the
    largest weight. Published, the weights sum to K, as if the learning rate were K times as large.
    For losses ≥ 0; one below 1e-8 counts as that.

    | symbol | argument    | range                    |
    |--------|-------------|--------------------------|
    | K      | num_domains | ≥ 1                      |
    | T      | temperature | > 0; the authors' is 2   |
    |        | every       | updates an epoch, ≥ 1    |
    """

    total: Tensor
    last: Tensor

    def __init__(self, num_domains: int, *, temperature: float = 2.0, every: int = 100) -> None:
        super().__init__(num_domains)
        self.temperature = arguments.positive("temperature", temperature)
        self.updates = arguments.count("every", every)  # `every` is of rules that skip iterations
        self.register_buffer("total", torch.zeros_like(self.p))
        self.register_buffer("last", torch.zeros_like(self.p))  # L(e − 1), 0: not known yet

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        payoff = torch.dot(self.p, f)
        self.total.add_(f)
        ends = self.steps % self.updates == 0
        mean = (self.total / self.updates).clamp(min=_SMALLEST)
        ratio = (mean / self.last.clamp(min=_SMALLEST)).clamp(max=1e30)
        is_known = (self.last > 0).all().logical_and(ends)
        p = torch.where(is_known, torch.softmax(ratio / self.temperature, dim=0), self.p)
        torch.where(ends, mean, self.last, out=self.last)
        self.total.mul_(~ends)
        return p, payoff, None


class FAMO(Adversary):
    """Liu, Feng, Stone and Liu, *FAMO: Fast Adaptive Multitask Optimization* (NeurIPS 2023).

        p_t ∝ z_t/f̂ᵗ,    z_t = softmax(ξ_t),    δ_t = log f̂ᵗ(W_t) − log f̂ᵗ(W_{t+1})
        ξ_{t+1} = ξ_t − η Adam(J_zᵀ δ_t + γ ξ_t),    ξ_1 = 0,    J_z = diag(z) − z zᵀ at ξ_t

    All losses are to fall at the same *rate*: a domain whose log-loss fell faster than the others'
    loses weight. As published the gradient is of c Σ z_k log f_k with c = 1/Σ(z_k/f_k), which is
    the p above, so nothing is normalised here. δ is of one batch, before and after the model's
    step: it `looks_back`. p weighs the batch it has seen (`weighs` is "current"). A domain that is
    not in the batch has δ = 0. A loss counts with 1e-8 added, as in the authors' code.

    | symbol | argument    | range                                       |
    |--------|-------------|---------------------------------------------|
    | k      | num_domains | ≥ 1; K elsewhere                            |
    | β      | eta         | > 0; Adam's step, the authors' is 0.025     |
    | γ      | gamma       | ≥ 0; decay of ξ                             |
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"
    looks_back: ClassVar[bool] = True

    logits: Tensor
    logs: Tensor
    mean: Tensor
    square: Tensor
    moves: Tensor

    def __init__(self, num_domains: int, *, eta: float = 0.025, gamma: float = 0.001) -> None:
        super().__init__(num_domains)
        self.eta = arguments.positive("eta", eta)
        self.gamma = arguments.nonnegative("gamma", gamma)
        for name in ("logits", "logs", "mean", "square"):  # logs: log f̂ᵗ(W_t)
            self.register_buffer(name, torch.zeros_like(self.p))
        self.register_buffer("moves", torch.zeros((), dtype=torch.int64))

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        self.logs.copy_(_log(f))
        p = torch.softmax(self.logits - self.logs, dim=0)
        return p, torch.dot(p, f), None

    def _look_back(self, f: Tensor, present: Tensor) -> None:
        fallen = torch.where(present, self.logs - _log(f), 0.0)
        z = torch.softmax(self.logits, dim=0)
        self._descend(z * (fallen - torch.dot(z, fallen)) + self.gamma * self.logits)

    def _descend(self, slope: Tensor) -> None:
        """Adam's step on the logits."""
        first, second = _DECAYS
        self.moves.add_(1)
        self.mean.lerp_(slope, 1 - first)
        self.square.mul_(second).addcmul_(slope, slope, value=1 - second)
        t = self.moves.to(slope.dtype)  # a power of an integer would be float32
        size = (self.square / (1 - second**t)).sqrt().add(_SMALLEST)
        self.logits.sub_(self.mean / (1 - first**t) / size, alpha=self.eta)


def _log(losses: Tensor) -> Tensor:
    return losses.clamp(min=0).add(_SMALLEST).log()
