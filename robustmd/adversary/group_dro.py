"""Group DRO: exponentiated gradient, with an allowance for small domains."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.base import Adversary


class GroupDRO(Adversary):
    """Algorithm 1 of Sagawa, Koh, Hashimoto and Liang, *Distributionally Robust Neural Networks for
    Group Shifts* (ICLR 2020), with the generalization adjustment of its section 3.3.

        p_t ∝ p_{t−1} exp(η_q (f̂ᵗ + C/√n)),    p_0 uniform,    n_k the size of domain k

    As published, p is updated first and the model's step then takes the new p with the same losses:
    `weighs` is "current". The allowance C/√n_k moves p alone, for it has no gradient in the model.

    | symbol | argument    | range                                                   |
    |--------|-------------|---------------------------------------------------------|
    | m      | num_domains | ≥ 1; K elsewhere                                        |
    | η_q    | eta         | > 0; the authors' code has 0.01                         |
    | C      | adjustment  | ≥ 0; 0: no allowance                                    |
    | n_g    | sizes       | K training sizes, > 0; without effect for adjustment 0  |
    """

    weighs: ClassVar[Literal["next", "current"]] = "current"

    allowance: Tensor
    log_p: Tensor

    def __init__(
        self,
        num_domains: int,
        *,
        eta: float = 0.01,
        adjustment: float = 0.0,
        sizes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(num_domains)
        self.eta = arguments.positive("eta", eta)
        allowance = torch.zeros_like(self.p)
        if arguments.nonnegative("adjustment", adjustment) > 0:
            if sizes is None:
                raise ValueError(f"adjustment is {adjustment}, which needs the domains' sizes.")
            counts = arguments.one_per_domain("sizes", sizes, num_domains)
            for n in counts:
                arguments.positive("sizes", n)
            allowance = adjustment / allowance.new_tensor(counts).sqrt()
        self.register_buffer("allowance", allowance, persistent=False)
        self.register_buffer("log_p", self.p.log())

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, None]:
        # The state is log p, normalised every time: a product of exponentials would overflow.
        gain = torch.add(f, self.allowance)
        self.log_p.copy_(torch.log_softmax(torch.add(self.log_p, gain, alpha=self.eta), dim=0))
        p = self.log_p.exp()
        return p, torch.dot(p, f), None
