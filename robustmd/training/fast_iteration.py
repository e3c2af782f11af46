"""The same iteration, faster: compiled, or captured once as CUDA graphs and replayed.

A replay is one launch for a part of the iteration instead of hundreds.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from robustmd.config import settings
from robustmd.errors import Say, UserError, first_line
from robustmd.training.batches import BatchStream
from robustmd.training.history import Clock, History
from robustmd.training.learner import Learner
from robustmd.training.loop import Iterate, Parts, Steps, iterate, losses_weighed
from robustmd.training.pool import TrainingPool

WARM_UP = 3  # iterations before the capture: libraries choose their kernels, buffers come to be
# How far a captured iteration may be off: a share of what a plain one changes, which bfloat16 and
# sums in another order stay below, and of the numbers themselves, as float32 rounds them.
LOOSE, TIGHT = 0.05, 1e-6

Step = Callable[[], None]
Capture = Callable[[Step], Step]


def ready_iteration(runtime: settings.Runtime, parts: Parts, say: Say) -> Iterate:
    """What the loop calls for one iteration, by `runtime.graph` and `runtime.compile`.

    Where no graph can be captured, `say` is told and the run goes on without. The seconds that
    capturing and compiling take are the clock's part "start".

    Raises:
        UserError: runtime.compile=true, and nothing here compiles.
    """
    pool, device = parts.pool, parts.pool.device
    drawn_here = pool.augmentation is not None and pool.augmentation.numbers is None
    few_of_many = parts.batches.samples_domains and len(pool.shelves) > 1
    if pool.resident and parts.batches.is_whole and not few_of_many and not drawn_here:
        parts.batches.put_on(device)
    begun = time.perf_counter()
    if runtime.compile:
        _compile(parts)
    iteration: Iterate = iterate
    if device.type == "cuda" and runtime.graph == "auto":
        iteration = _captured(parts, say)
    if runtime.compile or device.type == "cuda":
        parts.clock.add("start", time.perf_counter() - begun)
    return iteration


def _compile(parts: Parts) -> None:
    parts.learner.compile()
    try:
        numbers_around(iterate, parts)  # the first pass is what compiles
    except Exception as error:
        if not type(error).__module__.startswith("torch."):
            raise
        raise UserError(
            f"runtime.compile=true: torch.compile does not work here ({first_line(error)}); leave "
            "it out, or install a C++ compiler"
        ) from None


def _captured(parts: Parts, say: Say) -> Iterate:
    """Captured, where that can be and two iterations of it, taken back, do what plain ones do."""
    plain = numbers_around(iterate, parts)
    reason = why_not(parts.batches, parts.pool)
    if reason is None:
        try:
            captured = CapturedIteration(parts)
            if _agree(plain, numbers_around(captured, parts)):
                return captured
            reason = "iterations replayed from one do not do what plain ones do"
        except Exception as error:  # whatever it is, a plain iteration has been seen to work
            reason = first_line(error)
            if parts.pool.device.type == "cuda":
                torch.cuda.synchronize()
    say(f"no CUDA graph: {reason}")
    return iterate


def why_not(batches: BatchStream, pool: TrainingPool) -> str | None:
    """Why an iteration cannot be captured here; None: nothing speaks against it."""
    if not pool.resident:
        return "the images do not fit on the device, so that each batch comes from the host"
    if pool.augmentation is not None and pool.augmentation.numbers is None:
        return (
            f"data.augment={pool.augmentation.name} draws from torch's generators, which are "
            "seeded for each batch"
        )
    if not batches.is_whole:
        return "several processes train, and wait for each other"
    if batches.samples_domains and len(pool.shelves) > 1:
        return (
            "which domains are drawn decides which of the "
            f"{len(pool.shelves)} arrays of images are read"
        )
    return None


Numbers = tuple[torch.Tensor, torch.Tensor]  # of the model and p, each flat


def numbers_around(iteration: Iterate, parts: Parts) -> tuple[Numbers, Numbers]:
    """Before and after two iterations, which are taken back: the second has another batch, and all
    that the first has changed."""
    learner, device = parts.learner, parts.pool.device

    def numbers() -> Numbers:
        flat = [p.detach().flatten() for p in learner.model.parameters()]
        return torch.cat(flat), learner.adversary.p.clone()

    with as_before(learner):
        before = numbers()
        history = History(parts.history.domains, 2, device)
        tried = replace(parts, history=history, clock=Clock(device))
        for _ in range(2):
            iteration(tried)
        return before, numbers()


def _agree(one: tuple[Numbers, Numbers], other: tuple[Numbers, Numbers]) -> bool:
    """The same but for rounding; no NaN agrees."""
    return all(
        bool((mine - theirs).norm() <= LOOSE * (mine - start).norm() + TIGHT * start.norm())
        for start, mine, theirs in zip(*one, other[1], strict=True)
    )


@contextmanager
def as_before(learner: Learner) -> Iterator[None]:
    """Take back, in place, whatever the block does to the learner's numbers and to torch's."""
    state, device = copy.deepcopy(learner.state_dict()), learner.adversary.weights.device
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        learner.load_state_dict(state)


class CapturedIteration(Steps):
    """`loop.iterate`, captured: the same steps on the same memory, replayed.

    The learner is afterwards as it was before: the warm-up's steps are taken back. What changes
    from one iteration to the next lies on the device and is written before a replay: the draw and
    the learning rates.

    Args:
        parts: what will be iterated on; learner, batches and pool are always these.
        capture: turns a step that has been warmed up into its replay; None: a CUDA graph.
    """

    def __init__(self, parts: Parts, capture: Capture | None = None) -> None:
        super().__init__(parts)
        learner, device = parts.learner, parts.learner.adversary.weights.device
        super().draw()
        self.drawn = self.drawn.each(lambda part: part.to(device, copy=True))  # replays read it
        ordered = [self.gather, self.forward, self.answer, self.descend]
        with as_before(learner), side_stream(device):
            for _ in range(WARM_UP):
                for step in ordered:
                    step()
            # Its autograd graph would tie the gradients to this stream; the capture has its own.
            del self.losses, self.whole
        learner.optimizer.zero_grad(set_to_none=True)
        if losses_weighed(parts) == "next":  # as they are replayed: their memory is shared
            ordered[2:] = [self.descend, self.answer]
        if learner.adversary.feeds_on != "batch":  # it has no work, and no graph can be empty
            ordered.remove(self.answer)
        if learner.adversary.looks_back:
            ordered.append(self.look_back)
        take = capture or GraphCapture()
        replays = {step.__name__: take(step) for step in ordered}
        vars(self).update(replays)  # in place of the methods

    def __call__(self, parts: Parts) -> None:
        """One iteration; see `loop.iterate`."""
        iterate(parts, self)

    def draw(self) -> None:
        self.drawn.copy_(self.parts.batches.draw(self.parts.learner.iteration))


class GraphCapture:
    """Captures steps one after another into graphs that share their memory."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()

    def __call__(self, step: Step) -> Step:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            step()

        def replay(_kept: Step = step) -> None:  # the graph reads the step's tensors where they lie
            graph.replay()

        return replay


@contextmanager
def side_stream(device: torch.device) -> Iterator[None]:
    """Warm up where CUDA wants it: on a stream of its own."""
    if device.type != "cuda":
        yield
        return
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream(device).wait_stream(stream)
