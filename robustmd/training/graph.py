"""A whole iteration as one CUDA graph: a replay is one launch instead of hundreds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from robustmd.errors import UserError, first_line

if TYPE_CHECKING:
    from robustmd.training.run import Run

WARM_UP = 3  # iterations before the capture: libraries choose their kernels, buffers come to be

Step = Callable[[], None]
Capture = Callable[[Step], Step]


def captured_step(run: Run, capture: Capture | None = None) -> Step | str:
    """`run.step`, captured; or why it cannot be, in words. The run is left as it was.

    What changes from one iteration to the next lies on the device, where the host writes it before
    a replay: the block of draws, the place in it, the row of the log, and the learning rates.

    Args:
        capture: turns a step that has been warmed up into its replay; None: a CUDA graph.
    """
    if reason := why_not(run):
        return reason
    try:
        with as_before(run), side_stream(run.plan.device):
            for _ in range(WARM_UP):
                run.log_row.zero_()
                run.step()
        run.learner.optimizer.zero_grad(set_to_none=True)
        with as_before(run):
            replay = (capture or _graph)(run.step)
    except Exception as error:  # whatever it is, a plain iteration has been seen to work
        if run.plan.device.type == "cuda":
            torch.cuda.synchronize()
        return first_line(error)
    clock = run.clock
    clock.replayed, clock.marks = (clock.marks or [[]])[-1], []

    def step() -> None:
        replay()
        clock.replays += 1

    return step


def compiled(run: Run) -> torch.nn.Module:
    """The model that iterations train through, compiled. Raises UserError: it cannot be."""
    module: torch.nn.Module = torch.compile(run.step_model)  # type: ignore[assignment]
    plain, run.step_model = run.step_model, module
    try:
        with as_before(run):
            run.step()  # the first pass is what compiles
    except Exception as error:
        run.step_model = plain
        if not type(error).__module__.startswith("torch."):
            raise
        raise UserError(
            f"runtime.compile=true: torch.compile does not work here ({first_line(error)}); leave "
            "it out, or install a C++ compiler"
        ) from None
    run.clock.marks = []
    return module


def why_not(run: Run) -> str:
    """Why an iteration cannot be captured; "": nothing speaks against it."""
    if not run.images.resident:
        return "the images do not fit on the device, so that each batch comes from the host"
    if run.batches.draws_by_seed:
        name = run.plan.config.data.augment
        return f"data.augment={name} draws from torch's generators, which are seeded for each batch"
    if run.plan.processes.size > 1:
        return "several processes train, and wait for each other"
    return ""


def begin_state(optimizer: torch.optim.Optimizer) -> None:
    """Make the optimizer's state now, as it is before the first step, by a step that moves nothing:
    a graph needs its place from the beginning."""
    before = [dict(group) for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group.update(lr=torch.zeros_like(torch.as_tensor(group["lr"])), weight_decay=0.0)
        for p in group["params"]:
            p.grad = torch.zeros_like(p)
    optimizer.step()
    optimizer.zero_grad()
    for group, kept in zip(optimizer.param_groups, before, strict=True):
        group.update(kept)
    for state in optimizer.state.values():
        for name, value in state.items():
            value.fill_(1.0 if name == "mu_product" else 0.0)  # NAdam's is a product


@contextmanager
def as_before(run: Run) -> Iterator[None]:
    """Take back, in place, whatever the block does to the run's numbers and to torch's."""
    learner, device = run.learner, run.plan.device
    if not learner.optimizer.state:
        begin_state(learner.optimizer)
    tensors = [*learner.state_dict(keep_vars=True).values(), run.log, run.log_row]
    tensors += [x for of_one in learner.optimizer.state.values() for x in of_one.values()]
    kept = copy.deepcopy([tensor.detach() for tensor in tensors])
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        with torch.no_grad():
            for tensor, before in zip(tensors, kept, strict=True):
                tensor.copy_(before)


def _graph(step: Step) -> Step:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


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
