"""The contract every rule keeps."""

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.precision import PreciseModule, default_dtype


class Play(NamedTuple):
    """One round of the game, on the device, for whoever keeps the score (see `RegretMeter`)."""

    losses: Tensor  # f̂ᵗ [K]
    payoff: Tensor  # p·f̂ᵗ − (λ/2) D(p‖q), a scalar, p the weights of iteration t (see `weighs`)
    direction: Tensor | None  # ĥᵗ [K], where the rule has one


class Adversary(PreciseModule):
    """Turns the losses of K domains into a distribution over them.

        p_{t+1} = rule(p_t, f̂ᵗ)

    A rule implements `_respond`. All state is in buffers, changed in place and only on the device:
    `update` makes no host–device sync and can be captured in a CUDA graph.

    Args:
        num_domains: K ≥ 1.
        prior: q, K weights that are not negative and sum to 1; None: uniform.

    Attributes:
        weights: p_t, float32 [K] on the losses' device, sums to 1 within 1e-6. Updated in place:
            never call `update` between the weighted sum and `backward`; clone it to keep it.
        p: the same in float64, where the device has it.
        steps: t, the number of updates so far.
        feeds_on: "batch" (losses of the mini-batch, before the model's step) or "dataset" (of the
            whole training set).
        weighs: whose losses the answer to f̂ᵗ weighs: the "next" iteration's (call `update` after
            the model's step), or the "current" one's, as rules do that have no memory (call it
            before `backward`, with the losses detached).
        signed: whether weights may be negative; they sum to 1 all the same.
        every: iterations between two updates.
    """

    feeds_on: ClassVar[Literal["batch", "dataset"]] = "batch"
    weighs: ClassVar[Literal["next", "current"]] = "next"
    signed: ClassVar[bool] = False
    every: int = 1

    weights: Tensor
    p: Tensor
    prior: Tensor
    losses: Tensor
    steps: Tensor

    def __init__(self, num_domains: int, prior: Sequence[float] | None = None) -> None:
        super().__init__()
        self.num_domains = arguments.count("num_domains", num_domains)
        self.q = arguments.distribution("prior", prior, num_domains)  # on the host
        dtype = default_dtype()
        start = torch.full((num_domains,), 1.0 / num_domains, dtype=dtype)
        # What the constructor is given is no state: it stays out of state_dict.
        self.register_buffer("prior", torch.tensor(self.q, dtype=dtype), persistent=False)
        self.register_buffer("p", start)
        self.register_buffer("weights", start.float())
        self.register_buffer("losses", torch.full_like(start, torch.nan))  # NaN: never seen
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def update(self, losses: Tensor, present: Tensor | None = None) -> Play:
        """Answer the losses of one iteration: p_t becomes p_{t+1}.

        Args:
            losses: f̂ᵗ [K], the mean loss of every domain, in nats. Not differentiated through.
            present: bool [K]; a domain that is absent keeps its last loss (one that was never seen
                yet counts with the mean of the others). None: all are present.

        Raises:
            ValueError: losses is not of shape [K], or on another device than the adversary.
        """
        f = self._observe(losses.detach(), present)
        self.steps.add_(1)
        p, payoff, direction = self._respond(f)
        self.p.copy_(p)
        self.weights.copy_(p)
        return Play(f, payoff, direction)

    def is_due(self, iteration: int) -> bool:
        """Whether to update after `iteration` ≥ 0 steps of the model, before the next one."""
        return iteration % self.every == 0

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """(p_{t+1}, payoff, ĥᵗ) for the losses f [K]; `p` is still p_t, `steps` is already t."""
        raise NotImplementedError

    def regret_bound(self, mu: float, total_steps: int) -> float | None:
        """The proved bound on the regret after T updates, not divided by T; None: none is proved.

        Args:
            mu: μ = max_t ‖ĥᵗ‖, in the norm of the rule's regularizer; `RegretMeter.mu`.
            total_steps: T ≥ 1, the updates so far.
        """
        return None

    def _observe(self, losses: Tensor, present: Tensor | None) -> Tensor:
        if losses.shape != self.p.shape:
            raise ValueError(
                f"losses has shape {list(losses.shape)}; it needs one per domain: [{len(self.q)}]."
            )
        if losses.device != self.p.device:
            raise ValueError(
                f"losses are on {losses.device}, the adversary on {self.p.device}: "
                f"move it with adversary.to({str(losses.device)!r})."
            )
        if present is None:
            return self.losses.copy_(losses)
        self.losses.copy_(torch.where(present, losses, self.losses))
        unseen = self.losses.isnan().logical_and(~present)
        return torch.where(unseen, self.losses.nanmean().nan_to_num(), self.losses)

    def _start_at(self, p: Tensor) -> None:
        """Set p₁."""
        self.p.copy_(p)
        self.weights.copy_(p)

    def _start_on_support(self) -> None:
        """p₁ uniform on the prior's support, where q_k = 0 pins p_k = 0."""
        support = (self.prior > 0).to(self.p.dtype)
        self._start_at(support / support.sum())
