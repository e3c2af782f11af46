"""The step rules of the ascent: how far p (or log p) moves along ĥᵗ at iteration t."""

from typing import Literal

import torch
from torch import Tensor, nn

from robustmd.adversary import arguments, schedules
from robustmd.adversary.precision import PreciseModule, default_dtype

StepName = Literal["theory", "constant"]
Constant = float | Literal["auto", "centred"]  # c


def spread(h: Tensor, norm: float) -> Tensor:
    """The length of h without its level: ‖h − h̄‖₂, or half of max h − min h for the norm ∞."""
    return torch.linalg.vector_norm(h - h.mean()) if norm == 2 else (h.amax() - h.amin()) / 2


class ConstantStep(nn.Module):
    """x + η h, with η = eta > 0."""

    def __init__(self, eta: float | None) -> None:
        super().__init__()
        if eta is None:
            raise ValueError("step is 'constant', which needs its size: give eta, above 0.")
        self.eta = arguments.positive("eta", eta)

    def move(self, x: Tensor, h: Tensor, t: Tensor) -> Tensor:
        return torch.add(x, h, alpha=self.eta)


class TheoryStep(PreciseModule):
    """x + h/(m(t + c)): m the modulus of strong convexity, c as Corollary 1 has it.

    Args:
        modulus: m > 0: λ for L2 in ‖·‖₂, λ/2 for KL in ‖·‖₁.
        c: c ≥ 0, or "auto" for `schedules.optimal_c(mu, m, total_steps)`, or "centred" for the same
            with a μ that bounds only how much the components of ĥ differ (`spread`).
        mu: μ > 0, the bound on ĥ that both take; None: `calibrate` gives it at iteration 1.
        total_steps: T ≥ 1, for both.

    Attributes:
        c: the constant, a scalar on the device (NaN until the first losses were seen).
        is_centred: whether c is "centred".
    """

    c: Tensor

    def __init__(
        self,
        modulus: float,
        c: Constant = "auto",
        mu: float | None = None,
        total_steps: int | None = None,
    ) -> None:
        super().__init__()
        self.modulus = modulus
        self.total_steps = total_steps
        self.is_centred = c == "centred"
        self.needs_mu = isinstance(c, str) and mu is None
        constant = torch.nan
        if isinstance(c, str):
            arguments.one_of("c", c, ("auto", "centred"))
            total = arguments.updates_to_come(total_steps, f"c is {c!r}")
            if mu is not None:
                constant = schedules.optimal_c(arguments.positive("mu", mu), modulus, total)
        else:
            constant = arguments.nonnegative("c", c)
        self.register_buffer("c", torch.tensor(constant, dtype=default_dtype()))

    def calibrate(self, mu: Tensor, t: Tensor) -> None:
        """c ← c*(μ, m, T) of `schedules.optimal_c` if t is 1, where no mu was given.

        Called at every t: which update is the first that counts is for the device alone to see.
        """
        squared = (mu / self.modulus).square_()
        root = (squared * (2 / (self.total_steps or 1))).add_(1).sqrt_()
        torch.where(t == 1, squared.div_(root.add_(1)), self.c, out=self.c)

    def move(self, x: Tensor, h: Tensor, t: Tensor) -> Tensor:
        return torch.addcdiv(x, h, t + self.c, value=1 / self.modulus)


def make_step(
    name: StepName,
    modulus: float,
    *,
    c: Constant,
    mu: float | None,
    total_steps: int | None,
    eta: float | None,
) -> TheoryStep | ConstantStep:
    """The step rule of that name; see `TheoryStep` and `ConstantStep` for the arguments."""
    arguments.one_of("step", name, ("theory", "constant"))
    return ConstantStep(eta) if name == "constant" else TheoryStep(modulus, c, mu, total_steps)
