"""DoReMi: a mixture of training texts by what a reference model shows can still be learned."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary


class DoReMi(Adversary):
    """Algorithm 1 of Xie, Pham, Dong, Du, Liu, Lu, Liang, Le, Ma and Yu, *DoReMi: Optimizing Data
    Mixtures Speeds Up Language Model Pretraining* (NeurIPS 2023).

        α_t = (1 − c) α'_t / Σ_i α'_t[i] + c u,    α'_t = α_{t−1} exp(η λ_t),    α_0 = u uniform
        λ_t[i] = (1/Σ_{x∈B∩D_i} |x|) Σ_{x∈B∩D_i} Σ_j max(ℓ_{θ,j}(x) − ℓ_{ref,j}(x), 0)

    `update` takes λ_t, the mean excess of every domain's tokens over a reference model, clipped at
    0 for each token. As published, α is updated first, and the proxy's step takes the new α with
    its own plain losses: `(adversary.weights * losses).sum()`. The final model is trained on the
    mixture `average`. `examples/language_model.py` has all three steps.

    | symbol | argument    | range                                  |
    |--------|-------------|----------------------------------------|
    | k      | num_domains | ≥ 1; K elsewhere                       |
    | η      | eta         | > 0, the step; 1 as published          |
    | c      | smoothing   | in [0, 1); 0.001 as published          |

    Attributes:
        average: ᾱ = (1/T) Σ_t α_t over the updates so far [K]; NaN before the first.
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    log_p: Tensor
    p_sum: Tensor

    def __init__(self, num_domains: int, *, eta: float = 1.0, smoothing: float = 1e-3) -> None:
        super().__init__(num_domains)
        self.eta = arguments.positive("eta", eta)
        self.smoothing = arguments.nonnegative("smoothing", smoothing)
        if smoothing >= 1:
            raise ValueError(f"smoothing is {smoothing}; it must be in [0, 1).")
        self.register_buffer("log_p", self.p.log())
        self.register_buffer("p_sum", torch.zeros_like(self.p))

    @property
    def average(self) -> Tensor:
        return self.p_sum / self.steps

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        moved = torch.softmax(torch.add(self.log_p, f, alpha=self.eta), dim=0)
        p = (1 - self.smoothing) * moved + self.smoothing / self.num_domains
        self.log_p.copy_(p.log())
        self.p_sum.add_(p)
        return p, torch.dot(p, f), None
