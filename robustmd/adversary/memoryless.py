"""Rules without memory: fixed weights, and those that answer the batch that they weigh."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary
from robustmd.adversary.simplex import finite_log


class Fixed(Adversary):
    """Mixture-Even of Qian et al. (AAAI-19), and the controls with any other fixed weights.

        p_t = q

    | symbol | argument    | range                                           |
    |--------|-------------|-------------------------------------------------|
    | K      | num_domains | ≥ 1                                             |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default: uniform |
    """

    learns = False

    def __init__(self, num_domains: int, *, prior: Sequence[float] | None = None) -> None:
        super().__init__(num_domains, prior)
        self._start_at(self.prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        return self.p, torch.dot(self.p, f), None


def spend_on_worst(losses: Tensor, mass: Tensor, budget: float) -> Tensor:
    """Spend a budget on the domains with the largest losses: each gets at most its mass.

        argmax_s s·f   subject to   0 ≤ s ≤ m,  Σ s_k = min(b, Σ m_k)

    Domains of equal loss share what is left for them in proportion to their mass.

    Args:
        losses: f [K].
        mass: m [K], ≥ 0.
        budget: b > 0.

    Returns:
        s [K].
    """
    ascending, order = losses.neg().sort()
    total = torch.nn.functional.pad(mass[order].cumsum(dim=0), (1, 0))  # of the j worst, j = 0 … K
    above = total[torch.searchsorted(ascending, -losses)]  # mass with a larger loss
    level = total[torch.searchsorted(ascending, -losses, right=True)] - above  # with the same
    spent = (budget - above).clamp(min=0).minimum(level)
    return mass * (spent / level.clamp(min=torch.finfo(mass.dtype).tiny))


class CVaR(Adversary):
    """Conditional value at risk over domains: Rockafellar and Uryasev (Journal of Risk, 2000).

        max_p p·f̂   subject to   0 ≤ p_k ≤ q_k/α,  Σ p_k = 1

    The worst domains up to a share α of the prior's mass get all the weight, in proportion to q;
    the last of them only what is left, and domains of equal loss share alike. α = 1 is p = q, and
    α ≤ min_k q_k the plain maximum. No memory: p answers the same batch (`weighs` is "current").

    | symbol | argument    | range                                           |
    |--------|-------------|-------------------------------------------------|
    | K      | num_domains | ≥ 1                                             |
    | α      | alpha       | > 0, ≤ 1                                        |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default: uniform |
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    def __init__(
        self, num_domains: int, alpha: float, *, prior: Sequence[float] | None = None
    ) -> None:
        super().__init__(num_domains, prior)
        self.alpha = arguments.share("alpha", alpha)
        self._start_at(self.prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        spent = spend_on_worst(f, self.prior, self.alpha)
        p = spent / spent.sum()
        return p, torch.dot(p, f), None


class TopK(Adversary):
    """The average top-k loss of Fan, Lyu, Ying and Hu (NeurIPS 2017), over domains.

        p = 1/k on the k domains with the largest f̂, 0 on the others

    The same as `CVaR` at α = k/K and a uniform prior, but exact. k = 1 is the plain maximum, k = K
    is p uniform. Where domains of equal loss compete for the last places, they share them. No
    memory: p answers the same batch (`weighs` is "current").

    | symbol | argument    | range    |
    |--------|-------------|----------|
    | K      | num_domains | ≥ 1      |
    | k      | k           | 1 … K    |
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    def __init__(self, num_domains: int, k: int) -> None:
        super().__init__(num_domains)
        if arguments.count("k", k) > num_domains:
            raise ValueError(f"k is {k}; there are only {num_domains} domains.")
        self.k = k

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        p = spend_on_worst(f, torch.ones_like(f), self.k) / self.k
        return p, torch.dot(p, f), None


class Tilted(Adversary):
    """TERM over domains: Li, Beirami, Sanjabi and Smith, *Tilted Empirical Risk Minimization*
    (ICLR 2021).

        min_W (1/t) log Σ_k q_k exp(t f_k(W)),    whose gradient is Σ_k p_k ∇f_k with
        p_k ∝ q_k exp(t f̂_k)                      of the same batch: `weighs` is "current"

    t → 0 is the mean Σ q_k f_k (and t = 0 is it), t → ∞ the largest loss, t → −∞ the smallest. For
    t > 0 this is the best response of the KL-regularised adversary at λ = 2/t. q_k = 0 pins p_k
    at 0.

    | symbol | argument    | range                                                              |
    |--------|-------------|--------------------------------------------------------------------|
    | K      | num_domains | ≥ 1                                                                |
    | t      | tilt        | any number; > 0 leans to the worst domain, < 0 turns away from it  |
    | q      | prior       | K weights, ≥ 0, that sum to 1; default: uniform                    |
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    log_prior: Tensor

    def __init__(
        self, num_domains: int, tilt: float, *, prior: Sequence[float] | None = None
    ) -> None:
        super().__init__(num_domains, prior)
        self.tilt = arguments.number("tilt", tilt)
        self.register_buffer("log_prior", finite_log(self.prior), persistent=False)
        self._start_at(self.prior)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        p = torch.softmax(torch.add(self.log_prior, f, alpha=self.tilt), dim=0)
        return p, torch.dot(p, f), None


class VarianceRisk(Adversary):
    """V-REx of Krueger et al., *Out-of-Distribution Generalization via Risk Extrapolation* (ICML
    2021).

        min_W f̄(W) + β Var_k f_k(W),    f̄ = (1/K) Σ_k f_k,  Var_k f_k = (1/K) Σ_k (f_k − f̄)²

    There is no adversary in it, but its gradient is a weighted sum of the domains' gradients:

        ∇(f̄ + β Var) = Σ_k p_k ∇f_k,    p_k = 1/K + (2β/K)(f̂_k − f̄),    Σ_k p_k = 1

    of the same batch (`weighs` is "current"). A domain whose loss is more than 1/(2β) below the
    mean has a *negative* weight (`signed`): the model's step makes it worse, to make them equal.

    | symbol | argument    | range |
    |--------|-------------|-------|
    | m      | num_domains | ≥ 1   |
    | β      | beta        | ≥ 0   |
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"
    signed: ClassVar[bool] = True

    def __init__(self, num_domains: int, beta: float) -> None:
        super().__init__(num_domains)
        self.beta = arguments.nonnegative("beta", beta)

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        above_mean = f - f.mean()
        p = (1 + 2 * self.beta * above_mean) / self.num_domains
        return p, torch.dot(p, f), None
