"""Optimistic projected ascent: it expects the losses to change as they did last time."""

import torch
from torch import Tensor

from robustmd.adversary.ascent import ProjectedAscent


class OptimisticAscent(ProjectedAscent):
    """`ProjectedAscent` on 2f̂ᵗ − f̂ᵗ⁻¹ in place of f̂ᵗ.

        p_{t+1} = Π_Δ(p_t + η_t (ĥᵗ + f̂ᵗ − f̂ᵗ⁻¹)),    f̂⁰ = f̂¹

    Optimistic gradient ascent with one sequence (Daskalakis, Ilyas, Syrgkanis and Zeng, ICLR 2018;
    Mokhtari, Ozdaglar and Pattathil, AISTATS 2020): descent against plain ascent spirals away from
    a saddle point, and the correction f̂ᵗ − f̂ᵗ⁻¹ takes that drift away. Only the losses are
    extrapolated: the regularizer's gradient is known. The arguments are those of
    `ProjectedAscent`; no bound on the regret is proved with the theory's step.
    """

    last: Tensor

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.register_buffer("last", torch.full_like(self.p, torch.nan))

    def _aim(self, f: Tensor, h: Tensor) -> Tensor:
        # Iteration 1 has no f̂⁰: a choice on the device, so that the host need not know t.
        aim = h + f - torch.where(self.steps == 1, f, self.last)
        self.last.copy_(f)
        return aim

    def regret_bound(self, mu: float, total_steps: int) -> None:
        return None
