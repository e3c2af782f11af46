"""An iteration captured once as CUDA graphs and replayed: one launch a part instead of hundreds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

from robustmd.training.batches import BatchStream
from robustmd.training.history import Clock, History
from robustmd.training.learner import Learner
from robustmd.training.loop import answer, batch_losses, descend, losses_weighed, of_all
from robustmd.training.pool import TrainingPool

WARM_UP = 3  # iterations before the capture: libraries choose their kernels, buffers come to be
Part = Callable[[], None]
Capture = Callable[[Part], Part]


def why_not(batches: BatchStream, pool: TrainingPool) -> str | None:
    """Why an iteration cannot be captured here; None: nothing speaks against it."""
    if pool.device.type != "cuda":
        return f"CUDA graphs need a CUDA device, not {pool.device}"
    if not pool.resident:
        return "the images do not fit on the device, so that each batch comes from the host"
    if batches.samples_domains and len(pool.shelves) > 1:
        return (
            "which domains are drawn decides which of the "
            f"{len(pool.shelves)} arrays of images are read"
        )
    return None


class CapturedIteration:
    """`loop.iterate`, captured: the same parts on the same memory, replayed.

    The learner is afterwards as it was before: the warm-up's steps are taken back. What changes
    from one iteration to the next lies on the device and is written before a replay: the draw and
    the learning rate.

    Args:
        learner, batches, pool: what will be iterated on, always these.
        capture: turns a part that has been warmed up into its replay; None: a CUDA graph.
    """

    def __init__(
        self,
        learner: Learner,
        batches: BatchStream,
        pool: TrainingPool,
        capture: Capture | None = None,
    ) -> None:
        self._learner, self._pool = learner, pool
        self._weighs = losses_weighed(learner, batches)
        device = learner.adversary.weights.device
        self._draw = batches.draw(learner.iteration).to(device, copy=True)
        self._rate = torch.zeros((), device=device)
        self._weights = torch.zeros(pool.num_domains, device=device)  # p_t; answering moves p on
        with self._rate_on_device():
            with as_before(learner), side_stream(device):
                for _ in range(WARM_UP):
                    self._data()
                    self._batch_losses()
                    self._answer()
                    self._descend()
            learner.optimizer.zero_grad(set_to_none=True)
            take = capture or GraphCapture()
            self._replay_data, self._replay_losses = take(self._data), take(self._batch_losses)
            parts = [self._answer, self._descend]  # in the order in which they are replayed
            if self._weighs == "next":
                parts.reverse()
            replays = {part: take(part) for part in parts if self._has_work(part)}
            self._replay_descend = replays[self._descend]
            self._replay_answer = replays.get(self._answer, lambda: None)

    def __call__(
        self,
        learner: Learner,
        batches: BatchStream,
        _: TrainingPool,
        history: History,
        clock: Clock,
    ) -> None:
        """One iteration; see `loop.iterate`."""
        with clock.part("data"):
            self._draw.copy_(batches.draw(learner.iteration))
            self._replay_data()
        with clock.part("model"):
            self._replay_losses()
        if self._weighs == "current":
            with clock.part("adversary"):
                self._replay_answer()
        with clock.part("model"):
            if learner.average is not None:
                learner.average.include(learner.model, learner.iteration + 1)
            self._rate.fill_(learner.optimizer.param_groups[0]["lr"])
            self._replay_descend()
            learner.schedule.step()
            history.record(self._weights, *self._f_all)
        if self._weighs == "next":
            with clock.part("adversary"):
                self._replay_answer()
        learner.iteration += 1

    def _has_work(self, part: Part) -> bool:
        """An empty graph cannot be captured: a rule fed with the data set answers elsewhere."""
        return part != self._answer or self._learner.adversary.feeds_on == "batch"

    # --- the parts ---------------------------------------------------------------------------

    def _data(self) -> None:
        self._images, self._labels = self._pool.gather(self._draw)

    def _batch_losses(self) -> None:
        parts = self._images, self._labels, self._pool, self._draw
        self._f = batch_losses(self._learner, *parts)
        self._f_all = of_all(self._learner, self._f, self._draw.domains)

    def _descend(self) -> None:
        self._weights.copy_(self._learner.adversary.weights)
        descend(self._learner, self._f, self._draw.domains)

    def _answer(self) -> None:
        answer(self._learner, *self._f_all)

    @contextmanager
    def _rate_on_device(self) -> Iterator[None]:
        """Let the optimizer read η_w from the device: a number would be captured for good."""
        (group,) = self._learner.optimizer.param_groups
        rate, fused = group["lr"], group["fused"]
        self._rate.fill_(rate)
        group["lr"], group["fused"] = self._rate, True
        try:
            yield
        finally:
            group["lr"], group["fused"] = rate, fused


class GraphCapture:
    """Captures parts one after another into graphs that share their memory."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()

    def __call__(self, part: Part) -> Part:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            part()
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


@contextmanager
def as_before(learner: Learner) -> Iterator[None]:
    """Take back, in place, whatever the block does to the learner's numbers."""
    modules = [learner.model, learner.adversary, learner.regret, learner.average]
    states = [(m, _copied(m.state_dict())) for m in modules if m is not None]
    momentum = [(buffer, buffer.clone()) for buffer in _momentum(learner)]
    iteration, schedule = learner.iteration, learner.schedule.state_dict()
    rates = [group["lr"] for group in learner.optimizer.param_groups]
    try:
        yield
    finally:
        learner.iteration = iteration
        learner.schedule.load_state_dict(schedule)
        for group, rate in zip(learner.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        for module, state in states:
            module.load_state_dict(state)  # copies in place
        there = {id(buffer) for buffer, _ in momentum}
        for buffer in _momentum(learner):
            if id(buffer) not in there:  # it came to be in the block: 0·momentum + g = g
                buffer.zero_()
        for buffer, before in momentum:
            buffer.copy_(before)


def _copied(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in state.items()}


def _momentum(learner: Learner) -> list[torch.Tensor]:
    buffers = (state.get("momentum_buffer") for state in learner.optimizer.state.values())
    return [buffer for buffer in buffers if buffer is not None]
