"""What carries out an iteration, and what makes it cheaper and changes no number: frozen features
computed once, torch.compile, and a whole iteration as one CUDA graph."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from robustmd.backbones import head_of
from robustmd.errors import UserError, first_line
from robustmd.registry import BackboneFacts
from robustmd.training.data import LARGEST_SHARE, Images, Part
from robustmd.training.learner import computed
from robustmd.training.measure import evaluating, images_at_once

if TYPE_CHECKING:
    from robustmd.training.run import Run

WARM_UP = 3  # iterations before the capture: libraries choose their kernels, buffers come to be
RTOL, ATOL = 1e-4, 1e-5  # of logits, between the whole model's and its head's

Step = Callable[[], None]


def ready_step(run: Run) -> Step:
    """`run.step`, plain, compiled, or captured as a CUDA graph. Raises UserError: torch.compile
    does not work here, or several processes cannot train the model."""
    config, begun = run.plan.config, time.perf_counter()
    if run.plan.device.type != "cpu":
        where = f", all on {run.images.device}"
        if not run.images.resident:
            where = (
                f" would take more than {LARGEST_SHARE:.0%} of the free memory of "
                f"{run.images.device}: they stay on the host, and batches are read ahead"
            )
        run.note(f"images: {run.images.images.nbytes / 1e6:.0f} MB{where}")
    if config.backbone.freeze == "features":
        keep_features(run)
    run.step_model = run.plan.processes.wrap(run.learner.entered(run.learner.model))
    step: Step = run.step
    if config.runtime.compile:
        run.step_model = compiled(run)
    elif run.plan.device.type == "cuda" and config.runtime.graph == "auto":
        captured = captured_step(run)
        if isinstance(captured, str):
            run.note(f"no CUDA graph: {captured}")
        else:
            step = captured
    run.clock.seconds["start"] += time.perf_counter() - begun
    return step


# --- frozen features ------------------------------------------------------------------------------


def keep_features(run: Run) -> None:
    """Compute frozen features once where nothing random comes before them, or say why not."""
    begun = time.perf_counter()
    head = head_of(run.plan.config.backbone, BackboneFacts.of(run.plan.domains))
    if run.batches.augmentation or run.batches.draw_once(0).keys() & {"corners", "keys"}:
        features, reason = None, "the training images' views are random"
    else:
        features, reason = (
            features_of(run, head),
            "the model's head is not all that comes after them",
        )
    if features is None:
        run.note(f"frozen features are computed anew for each batch: {reason}")
        return
    run.use(with_features(run.images, features))
    run.learner.entrance = head
    seconds = time.perf_counter() - begun
    run.note(f"frozen features of {len(features):,} examples computed once, in {seconds:.1f} s")


def features_of(run: Run, head: str) -> torch.Tensor | None:
    """float32 [n, d]: what the layers `head` get, of every example of every part; None where they
    do not give the model's logits from it."""
    images, model, inputs = run.images, run.learner.model, list[torch.Tensor]()
    precision, features = run.plan.config.runtime.precision, []
    layers = model.get_submodule(head)
    handle = layers.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    try:
        with evaluating(model):
            for part in (part for parts in images.parts.values() for part in parts.values()):
                for batch, _ in images.chunks(part, images_at_once(images)):
                    inputs.clear()
                    logits = computed(model, batch, precision)
                    if len(inputs) != 1 or inputs[0].dim() != 2:
                        return None
                    features.append(inputs[0].float())
                    again = computed(layers, features[-1], precision)
                    if not torch.allclose(again, logits, RTOL, ATOL):
                        return None
                    run.stop.check()
    finally:
        handle.remove()
    return torch.cat(features)


def with_features(images: Images, features: torch.Tensor) -> Images:
    """The same data set with an example of features in each row, in the order of its parts."""
    result = copy.copy(images)
    result.images, result.size, result.variants = features, tuple(features.shape[1:]), None
    result.parts, labels, end = {split: {} for split in images.parts}, [], 0
    for split, parts in images.parts.items():
        for name, part in parts.items():
            start, end = end, end + len(part)
            result.parts[split][name] = Part(part.number, torch.arange(start, end), part.ids)
            labels.append(images.labels[part.ids.to(images.device)])
    result.labels = torch.cat(labels)
    return result


# --- compiled and captured iterations -------------------------------------------------------------


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


def cuda_graph(step: Step) -> Step:
    """A replay of the step, which is one launch instead of hundreds."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def captured_step(run: Run, capture: Callable[[Step], Step] = cuda_graph) -> Step | str:
    """`run.step`, captured; or why it cannot be, in words. The run is left as it was.

    What changes from one iteration to the next lies on the device, where the host writes it before
    a replay: the block of draws, the place in it, the row of the log, and the learning rates.
    capture: turns a step that has been warmed up into its replay.
    """
    if not run.images.resident:
        return "the images do not fit on the device, so that each batch comes from the host"
    if run.batches.draws_by_seed:
        name = run.plan.config.data.augment
        return f"data.augment={name} draws from torch's generators, which are seeded for each batch"
    if run.plan.processes.size > 1:
        return "several processes train, and wait for each other"
    try:
        with as_before(run), side_stream(run.plan.device):
            for _ in range(WARM_UP):
                run.log_row.zero_()
                run.step()
        run.learner.optimizer.zero_grad(set_to_none=True)
        with as_before(run):
            replay = capture(run.step)
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


@contextmanager
def as_before(run: Run) -> Iterator[None]:
    """Take back, in place, whatever the block does to the run's numbers and to torch's."""
    learner, device = run.learner, run.plan.device
    if not learner.optimizer.state:
        begin_state(learner.optimizer)
    tensors = [*learner.state_dict(keep_vars=True).values(), run.log, run.log_row]
    tensors += [x for state in learner.optimizer.state.values() for x in state.values()]
    kept = copy.deepcopy([tensor.detach() for tensor in tensors])
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        with torch.no_grad():
            for tensor, before in zip(tensors, kept, strict=True):
                tensor.copy_(before)


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
