"""The contract every rule keeps."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, distributed

from robustmd.adversary import arguments
from robustmd.adversary.precision import PreciseModule, default_dtype, precise_dtype

_OF_UPDATE = frozenset({"p", "weights", "steps", "skipped"})


class Play(NamedTuple):
    """One round of the game, on the device, for whoever keeps the score (see `RegretMeter`)."""

    losses: Tensor  # f̂ᵗ [K]
    payoff: Tensor  # p·f̂ᵗ − (λ/2) D(p‖q), a scalar, p the weights of iteration t (see `weighs`)
    direction: Tensor | None  # ĥᵗ [K], where the rule has one
    counts: Tensor  # bool, a scalar; False: a loss was not finite, and the round was not played


class Adversary(PreciseModule):
    """Turns the losses of K domains into a distribution over them.

        p_{t+1} = rule(p_t, f̂ᵗ)

    A rule implements `_respond`. All state is in persistent buffers, changed in place and only on
    the device: `update` makes no host–device sync and can be captured in a CUDA graph. An update
    with a loss that is not finite as a float32 changes none of them, whatever the rule; it is only
    counted.
    An argument out of range, of whatever rule, raises a ValueError.

    Args:
        num_domains: K ≥ 1.
        prior: q, K weights that are not negative and sum to 1; None: uniform.

    Attributes:
        weights: p_t, float32 [K] on the losses' device, sums to 1 within 1e-6 (of a `signed` rule,
            within 1e-6 of its largest weight). Updated in place: clone it to keep it.
        p: the same in float64, where the device has it.
        steps: t, the number of updates so far.
        skipped: how many more had a loss that was not finite, and changed nothing.
        feeds_on: "batch" (losses of the mini-batch, before the model's step) or "dataset" (of the
            whole training set).
        weighs: whose losses the answer to f̂ᵗ weighs: the "next" iteration's, or the "current"
            one's, as rules do that have no memory. `weighted_loss` keeps to it; by hand, `update`
            after the model's step, or before the weighted sum.
        looks_back: whether it also has to be told the same batch's losses after the model's step
            (`look_back`): a second forward pass.
        learns: whether the losses change the weights.
        signed: whether weights may be negative; they sum to 1 all the same.
        every: iterations between two updates.
    """

    feeds_on: ClassVar[Literal["batch", "dataset"]] = "batch"
    weighs: ClassVar[Literal["next", "current"]] = "next"
    looks_back: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    every: int = 1

    weights: Tensor
    p: Tensor
    prior: Tensor
    losses: Tensor
    steps: Tensor
    skipped: Tensor

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
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64))

    def weighted_loss(
        self,
        losses: Tensor,
        present: Tensor | None = None,
        *,
        counts: Tensor | None = None,
        group: distributed.ProcessGroup | None = None,
    ) -> Tensor:
        """p_t·f̂ᵗ, for `backward`; and the update by f̂ᵗ, before it or after as the rule `weighs`.

        An absent domain adds nothing. A loss that is not finite makes it not finite: skip the
        model's step then, as a GradScaler does. The full losses that a rule needs which `feeds_on`
        the "dataset" are given to `update` apart from this.

        Args:
            losses: f̂ᵗ [K], to be differentiated; float16 and bfloat16 are summed in float32.
            present, counts, group: as of `update`. With a group, what the processes give back sums
                to their number times p_t·f̂ᵗ over all examples: DDP, which averages the gradients,
                gets its gradient, whatever share of a domain each process has.

        Raises:
            ValueError: as `update`.
        """
        means, there, share = self._of_all(losses, present, counts, group)
        weights = self.weights.clone()  # `update` is in place, and `backward` comes after it
        if self.feeds_on == "batch":
            self.update(means, there)
        if self.weighs == "current":
            weights = self.weights.clone()
        own = losses.to(torch.promote_types(losses.dtype, torch.float32))
        if there is not None:
            own = torch.where(share > 0, own, 0.0)
        return (weights * share * own).sum()  # no matmul, which autocast would round

    def update(
        self,
        losses: Tensor,
        present: Tensor | None = None,
        *,
        counts: Tensor | None = None,
        group: distributed.ProcessGroup | None = None,
    ) -> Play:
        """Answer the losses of one iteration: p_t becomes p_{t+1}.

        Where every process of a group has a part of the batch, each gives its own `losses` and
        `counts`, and all get the same weights. The ranks' means averaged are not the mean: that
        weighs a rank's one example as much as another's hundred. So sums and counts are added up.

        Args:
            losses: f̂ᵗ [K], the mean loss of every domain, in nats. Not differentiated through.
            present: bool [K]; a domain that is absent keeps its last loss (one that was never seen
                yet counts with the mean of the others). None: all are present.
            counts: [K] ≥ 0, in place of `present`: this process's examples of every domain; a
                domain that has none in the whole group is absent.
            group: the processes, which must all call; None: all there are, or this one alone.

        Raises:
            ValueError: losses or counts are no tensor of shape [K], or on another device than the
                adversary; a group without counts, or counts and present.
        """
        losses, present, _ = self._of_all(losses, present, counts, group)
        seen = losses if present is None else torch.where(present, losses, 0.0)
        played = seen.float().abs().amax() < torch.inf  # and no NaN
        with self._undone_unless(played):
            f = self._observe(torch.where(played, losses, 0.0), present)
            self.steps.add_(played)
            p, payoff, direction = self._respond(f)
        torch.where(played, p, self.p, out=self.p)
        self.weights.copy_(self.p)
        self.skipped.add_(~played)
        return Play(f, payoff, direction, played)

    def look_back(
        self,
        losses: Tensor,
        present: Tensor | None = None,
        *,
        counts: Tensor | None = None,
        group: distributed.ProcessGroup | None = None,
    ) -> None:
        """For a rule that `looks_back`: after the model's step, the losses of the batch that it
        answered last. The weights change at the next update. Losses that are not finite are passed
        over; to other rules nothing happens.

        Args:
            losses, present, counts, group: as of `update`, for which the batch was the same.

        Raises:
            ValueError: as `update`.
        """
        losses, present, _ = self._of_all(losses, present, counts, group)
        there = torch.ones_like(self.p, dtype=torch.bool) if present is None else present
        seen = torch.where(there, losses, 0.0)
        finite = seen.float().abs().amax() < torch.inf
        with self._undone_unless(finite):
            self._look_back(torch.where(finite, seen, 0.0).to(self.p.dtype), there)

    @property
    def has_regret(self) -> bool:
        """Whether it plays against every batch, with learned weights from before it."""
        return self.learns and self.feeds_on == "batch" and self.weighs == "next"

    def is_due(self, iteration: int) -> bool:
        """Whether to update after `iteration` ≥ 0 steps of the model, before the next one."""
        return iteration % self.every == 0

    def _respond(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """(p_{t+1}, payoff, ĥᵗ) for the losses f [K]; `p` is still p_t, `steps` is already t."""
        raise NotImplementedError

    def _look_back(self, f: Tensor, present: Tensor) -> None:
        """What a rule that `looks_back` learns from f [K], 0 where a domain is not `present`."""

    def regret_bound(self, mu: float, total_steps: int) -> float | None:
        """The proved bound on the regret after T updates, not divided by T; None: none is proved.

        Args:
            mu: μ = max_t ‖ĥᵗ‖, in the norm of the rule's regularizer; `RegretMeter.mu`.
            total_steps: T ≥ 1, the updates so far.
        """
        return None

    def _of_all(
        self,
        losses: Tensor,
        present: Tensor | None,
        counts: Tensor | None,
        group: distributed.ProcessGroup | None,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """(f̂ᵗ [K] over all processes, `present`, what this one's losses count in f̂ᵗ [K], times the
        number of processes)."""
        losses = self._checked("losses", losses).detach()
        if counts is not None and present is None:
            return _over_group(losses, self._checked("counts", counts), group)
        if counts is not None or group is not None:
            raise ValueError("group needs counts, and counts stand in place of present.")
        share = torch.ones_like(self.weights) if present is None else present.to(self.weights)
        return losses, present, share

    def _checked(self, name: str, values: Tensor) -> Tensor:
        if not isinstance(values, Tensor):
            raise ValueError(f"{name} is {type(values).__name__}; it must be a tensor [K].")
        if values.shape != self.p.shape:
            raise ValueError(
                f"{name} has shape {list(values.shape)}; it needs one per domain: [{len(self.q)}]."
            )
        if values.device != self.p.device:
            raise ValueError(
                f"{name} are on {values.device}, the adversary on {self.p.device}: "
                f"move it with adversary.to({str(values.device)!r})."
            )
        return values

    @contextmanager
    def _undone_unless(self, finite: Tensor) -> Iterator[None]:
        """What the block does to the rule's state stays where `finite` (bool, a scalar) holds."""
        before = [(buffer, buffer.clone()) for buffer in self._state_of_rule()]
        yield
        for buffer, kept in before:
            torch.where(finite, buffer, kept, out=buffer)

    def _state_of_rule(self) -> Iterator[Tensor]:
        """What `_respond` and `_observe` may change: persistent buffers, also of the rule's parts,
        but for those that `update` itself changes."""
        for part in self.modules():
            constants = part._non_persistent_buffers_set
            for name, buffer in part.named_buffers(recurse=False):
                if name not in constants and not (part is self and name in _OF_UPDATE):
                    yield buffer

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        state.setdefault(f"{prefix}skipped", torch.zeros_like(self.skipped))  # of before it was
        super()._load_from_state_dict(state, prefix, *rest)

    def _observe(self, losses: Tensor, present: Tensor | None) -> Tensor:
        if present is None:
            return self.losses.copy_(losses).clone()
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


class Averaged(Adversary):
    """An adversary that keeps the mean of the distributions it played, for `averages=True`.

    Attributes:
        average: p̄ = (1/T) Σ_t p_t over the updates so far [K]; NaN before the first.
    """

    p_sum: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("p_sum", torch.zeros_like(self.p))

    @property
    def average(self) -> Tensor:
        return self.p_sum / self.steps

    def _observe(self, losses: Tensor, present: Tensor | None) -> Tensor:
        self.p_sum.add_(self.p)
        return super()._observe(losses, present)


def domain_means(losses: Tensor, domains: Tensor, num_domains: int) -> tuple[Tensor, Tensor]:
    """(mean loss [K], number of examples [K]) of every domain in a batch, for `weighted_loss(means,
    counts=counts)`; no sync. Of a domain that is not in the batch both are 0.

    Args:
        losses: float [n], one for each example.
        domains: int64 [n], from 0 to K − 1.
        num_domains: K.
    """
    zeros = losses.new_zeros(num_domains, dtype=torch.float32)
    counts = zeros.index_add(0, domains, torch.ones_like(losses, dtype=torch.float32))
    return zeros.index_add(0, domains, losses.float()) / counts.clamp(min=1), counts


def _over_group(
    losses: Tensor, counts: Tensor, group: distributed.ProcessGroup | None
) -> tuple[Tensor, Tensor, Tensor]:
    """(mean loss [K] over the examples of all processes, bool [K]: has the domain any, this
    process's share of them [K] times the number of processes)."""
    precise = precise_dtype(losses.device)
    here = counts > 0  # the mean over no example may be NaN
    sums = torch.where(here, losses.to(precise) * counts, 0.0)
    both = torch.stack([sums, counts.to(precise)])
    processes = 1
    if group is not None or (distributed.is_available() and distributed.is_initialized()):
        distributed.all_reduce(both, group=group)
        processes = distributed.get_world_size(group)
    sums, totals = both
    share = (processes * counts / totals.clamp(min=1)).float()
    return sums / totals, totals > 0, share
