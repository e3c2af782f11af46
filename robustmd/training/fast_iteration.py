"""How a run iterates: as written, compiled or captured; what that costs is booked apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from robustmd.config import settings
from robustmd.errors import UserError
from robustmd.training.batches import BatchStream
from robustmd.training.cuda_graphs import CapturedIteration, as_before, why_not
from robustmd.training.history import Clock, History
from robustmd.training.images import why_not_pinned
from robustmd.training.learner import Learner
from robustmd.training.loop import Iteration, iterate
from robustmd.training.pool import TrainingPool

# How far a captured iteration may be off: a share of what a plain one changes, which bfloat16 and
# sums in another order stay below, and of the numbers themselves, as float32 rounds them.
LOOSE, TIGHT = 0.05, 1e-6


def ready_iteration(
    runtime: settings.Runtime,
    learner: Learner,
    batches: BatchStream,
    pool: TrainingPool,
    clock: Clock,
    say: Callable[[str], None],
) -> Iteration:
    """What the loop calls for one iteration, by `runtime.graph` and `runtime.compile`.

    On CUDA every choice of ours for speed is tried once, on iterations that are taken back: where
    a graph or another choice fails, `say` is told and the run goes on without. The seconds that
    this and compiling take are the clock's part "start".

    Raises:
        UserError: runtime.compile=true, and nothing here compiles.
    """
    device = learner.adversary.weights.device
    if pool.resident and not (batches.samples_domains and len(pool.shelves) > 1):
        batches.put_on(device)
    begun = time.perf_counter()
    if runtime.compile:
        _compile(learner, batches, pool)
    iteration: Iteration = iterate
    if device.type == "cuda":
        if (reason := why_not_pinned()) is not None:
            say(f"without pinned memory, so that copies wait: {reason}")
        effect = _plain_effect(learner, batches, pool, say)
        if runtime.graph == "auto":
            iteration = _captured(learner, batches, pool, say, effect)
    if runtime.compile or device.type == "cuda":
        clock.add("start", time.perf_counter() - begun)
    return iteration


def _compile(learner: Learner, batches: BatchStream, pool: TrainingPool) -> None:
    learner.compile()
    try:
        Effect.of(iterate, learner, batches, pool)  # the first pass is what compiles
    except Exception as error:
        if not type(error).__module__.startswith("torch."):
            raise
        raise UserError(
            f"runtime.compile=true: torch.compile does not work here ({_line(error)}); leave it "
            "out, or install a C++ compiler"
        ) from None


@dataclass(frozen=True)
class Effect:
    """What two iterations do to the model's numbers and to p: flat tensors, before and after.

    They are taken back. The second has another batch, and all that the first has changed.
    """

    before: tuple[torch.Tensor, torch.Tensor]
    after: tuple[torch.Tensor, torch.Tensor]

    @classmethod
    def of(
        cls, iteration: Iteration, learner: Learner, batches: BatchStream, pool: TrainingPool
    ) -> Effect:
        def numbers() -> tuple[torch.Tensor, torch.Tensor]:
            flat = [p.detach().flatten() for p in learner.model.parameters()]
            return torch.cat(flat), learner.adversary.p.clone()

        device = learner.adversary.weights.device
        with as_before(learner):
            before = numbers()
            history = History(("",) * pool.num_domains, 2, device)
            for _ in range(2):
                iteration(learner, batches, pool, history, Clock(device))
            return cls(before, numbers())

    def agrees(self, other: Effect) -> bool:
        """The same but for rounding; no NaN agrees."""
        return all(
            bool((mine - theirs).norm() <= LOOSE * (mine - start).norm() + TIGHT * start.norm())
            for start, mine, theirs in zip(self.before, self.after, other.after, strict=True)
        )


def _plain_effect(
    learner: Learner, batches: BatchStream, pool: TrainingPool, say: Callable[[str], None]
) -> Effect:
    """Of plain iterations. What we chose for speed alone and fails here is dropped for good."""
    for name, drop in FOR_SPEED.items():
        try:
            return Effect.of(iterate, learner, batches, pool)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            drop(learner)
            say(f"without {name}: {_line(error)}")
    return Effect.of(iterate, learner, batches, pool)


def _captured(
    learner: Learner,
    batches: BatchStream,
    pool: TrainingPool,
    say: Callable[[str], None],
    plain: Effect,
) -> Iteration:
    """Captured, where that can be and has been seen to do what a plain iteration does."""
    reason = why_not(batches, pool)
    if reason is None:
        try:
            captured = CapturedIteration(learner, batches, pool)
            if plain.agrees(Effect.of(captured, learner, batches, pool)):
                return captured
            reason = "iterations replayed from one do not do what plain ones do"
        except Exception as error:  # whatever it is, a plain iteration has been seen to work
            reason = _line(error)
            if pool.device.type == "cuda":
                torch.cuda.synchronize()
    say(f"no CUDA graph: {reason}")
    return iterate


def _unfused(learner: Learner) -> None:
    for group in learner.optimizer.param_groups:
        group["fused"] = False


def _contiguous(learner: Learner) -> None:
    averaged = [] if learner.average is None else [learner.average.model]
    for model in (learner.model, *averaged):
        model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        model.register_forward_pre_hook(lambda _, given: (given[0].contiguous(),))


FOR_SPEED: Mapping[str, Callable[[Learner], None]] = {
    "fused SGD": _unfused,
    "channels_last": _contiguous,
}


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
