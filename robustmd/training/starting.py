"""How a run iterates: as written, compiled or captured; what that costs is booked apart."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from robustmd import settings
from robustmd.errors import UserError
from robustmd.training.batches import BatchStream
from robustmd.training.captured import CapturedIteration, as_before, why_not
from robustmd.training.clock import Clock
from robustmd.training.learner import Learner
from robustmd.training.loop import Iteration, batch_losses, descend, iterate
from robustmd.training.pool import TrainingPool


def ready_iteration(
    runtime: settings.Runtime,
    learner: Learner,
    batches: BatchStream,
    pool: TrainingPool,
    clock: Clock,
    say: Callable[[str], None],
) -> Iteration:
    """What the loop calls for one iteration, by `runtime.graph` and `runtime.compile`.

    Where a graph is wanted and cannot be had, `say` is told why and the run goes on without. The
    seconds that compiling and capturing take are the clock's part "start".

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
    if runtime.graph == "auto" and device.type == "cuda":
        iteration = _captured(learner, batches, pool, say)
    if runtime.compile or iteration is not iterate:
        clock.add("start", time.perf_counter() - begun)
    return iteration


def _compile(learner: Learner, batches: BatchStream, pool: TrainingPool) -> None:
    learner.compile()
    draw = batches.draw(learner.iteration)
    images, labels = pool.gather(draw)
    try:
        with as_before(learner):  # the first pass is what compiles
            losses = batch_losses(learner, images, labels, pool, draw)
            descend(learner, losses, draw.domains)
    except Exception as error:
        if not type(error).__module__.startswith("torch."):
            raise
        line = str(error).strip().partition("\n")[0]
        raise UserError(
            f"runtime.compile=true: torch.compile does not work here ({line}); leave it out, "
            "or install a C++ compiler"
        ) from None


def _captured(
    learner: Learner,
    batches: BatchStream,
    pool: TrainingPool,
    say: Callable[[str], None],
) -> Iteration:
    reason = why_not(batches, pool)
    if reason is None:
        try:
            return CapturedIteration(learner, batches, pool)
        except RuntimeError as error:  # torch's own, for what CUDA cannot capture
            torch.cuda.synchronize()
            reason = str(error).strip().partition("\n")[0]
    say(f"no CUDA graph: {reason}")
    return iterate
