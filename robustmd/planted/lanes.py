"""Many adversaries of one rule, moved together: the package's own `update` under `torch.vmap`."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from robustmd.adversary import Adversary


class Lanes:
    """n adversaries of one rule that differ in nothing but their buffers (prior, reference, p, …).

    Attributes:
        weighs: as `Adversary.weighs`.
    """

    def __init__(self, adversaries: Sequence[Adversary]) -> None:
        first = adversaries[0]
        self.weighs = first.weighs
        buffers = [dict(adversary.named_buffers()) for adversary in adversaries]
        self._state = {
            f"adversary.{name}": torch.stack([own[name] for own in buffers]) for name in buffers[0]
        }
        answer = _Answer(first)
        self._update = torch.vmap(lambda state, f: functional_call(answer, state, (f,)))

    @property
    def p(self) -> Tensor:
        """p_t [n, K], float64."""
        return self._state["adversary.p"]

    def update(self, losses: Tensor) -> None:
        """Every lane answers its own losses [n, K]; the buffers change in place."""
        with warnings.catch_warnings():  # some operations are done lane by lane: slower, the same
            warnings.filterwarnings("ignore", "There is a performance drop")
            self._update(self._state, losses)


class _Answer(nn.Module):
    """`functional_call` calls a module's forward, with buffers put in place of its own."""

    def __init__(self, adversary: Adversary) -> None:
        super().__init__()
        self.adversary = adversary

    def forward(self, losses: Tensor) -> Tensor:
        return self.adversary.update(losses).payoff
