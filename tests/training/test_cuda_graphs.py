"""The captured iteration does what the plain one does, and leaves the learner as it found it."""

import copy
from collections.abc import Callable

import pytest
import torch
from tiny import parts, rows_of

from robustmd.training.cuda_graphs import CapturedIteration, as_before, why_not
from robustmd.training.history import Clock, History
from robustmd.training.loop import iterate

CPU = torch.device("cpu")
METHODS = ["method=even", "method=opt", "method=minimax", "method=term", "method=oracle"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("begun", [0, 5])
def test_replays_equal_plain_iterations(method: str, begun: int) -> None:
    """With a capture that only keeps the part: same rows, same weights, bit for bit; also from the
    middle of a run, where momentum and the adversary's state are there already."""
    plain, captured = parts(CPU, method), parts(CPU, method)
    for made in (plain, captured):
        if begun:
            rows_of(made, iterate, begun)
    replayed = CapturedIteration(*captured, capture=lambda part: part)
    (rows, weights), (rows_captured, weights_captured) = (
        rows_of(plain, iterate),
        rows_of(captured, replayed),
    )
    assert rows_captured == rows
    assert all(map(torch.equal, weights_captured, weights))
    if plain[0].regret is not None and captured[0].regret is not None:
        states = plain[0].regret.state_dict(), captured[0].regret.state_dict()
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_parts_are_captured_in_the_order_they_run() -> None:
    """Graphs that share memory must be replayed in the order of their capture."""
    for method, last in (("method=opt", "_answer"), ("method=term", "_descend")):
        order: list[str] = []

        def note(part: Callable[[], None], order: list[str] = order) -> Callable[[], None]:
            order.append(part.__name__)
            return part

        CapturedIteration(*parts(CPU, method), capture=note)
        assert order[:2] == ["_data", "_batch_losses"]
        assert order[-1] == last


def test_warming_up_leaves_no_trace() -> None:
    made = parts(CPU, "method=opt")
    rows_of(made, iterate, 3)
    learner = made[0]
    before = {k: v.clone() for k, v in learner.adversary.state_dict().items()}
    weights = learner.weights_hash()
    CapturedIteration(*made, capture=lambda part: part)
    assert learner.weights_hash() == weights
    assert all(torch.equal(before[k], v) for k, v in learner.adversary.state_dict().items())
    assert learner.iteration == 3
    assert isinstance(learner.optimizer.param_groups[0]["lr"], float)


def test_the_learning_rate_is_written_to_the_device_before_each_step() -> None:
    """A replay reads η_w of its own iteration, not the one at the capture."""
    made = parts(CPU, "method=even", "training.schedule=cosine")
    replayed = CapturedIteration(*made, capture=lambda part: part)
    seen, due = [], []
    for _ in range(5):
        due.append(made[0].optimizer.param_groups[0]["lr"])
        rows_of(made, replayed, 1)
        seen.append(float(replayed._rate))
    assert seen == pytest.approx(due)
    assert len(set(seen)) == 5


@pytest.mark.parametrize("method", ["method=opt", "method=minimax"])
def test_a_whole_iteration_is_taken_back(method: str) -> None:
    made = parts(CPU, method, "training.schedule=cosine")
    rows_of(made, iterate, 3)
    learner = made[0]
    before = copy.deepcopy(learner.state_dict())
    schedule = copy.deepcopy(learner.schedule.state_dict())
    groups = copy.deepcopy(learner.optimizer.state_dict()["param_groups"])
    with as_before(learner):
        rows_of(made, iterate, 2)
    after = learner.state_dict()
    assert after["iteration"] == 3
    assert learner.schedule.state_dict() == schedule
    assert learner.optimizer.state_dict()["param_groups"] == groups
    for part in ("model", "adversary", "regret", "average"):
        assert (part in before) == (part in after)
        for name, tensor in before.get(part, {}).items():
            assert torch.equal(after[part][name], tensor), name


def test_momentum_that_came_to_be_is_taken_back() -> None:
    learner, batches, pool = parts(CPU)
    with as_before(learner):
        rows_of((learner, batches, pool), iterate, 2)
        learner.iteration = 0
    buffers = [state["momentum_buffer"] for state in learner.optimizer.state.values()]
    assert buffers
    assert all(not buffer.any() for buffer in buffers)


def test_no_graph_without_cuda() -> None:
    _, batches, pool = parts(CPU)
    assert "need a CUDA device" in str(why_not(batches, pool))


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_cuda_graphs_equal_plain_iterations(method: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    device = torch.device("cuda", 0)
    plain, captured = parts(device, method), parts(device, method)
    rows, weights = rows_of(plain, iterate)
    rows_captured, weights_captured = rows_of(captured, CapturedIteration(*captured))
    for a, b in zip(rows, rows_captured, strict=True):
        assert a.batch_losses == pytest.approx(b.batch_losses, rel=1e-3)
        assert a.weights == pytest.approx(b.weights, abs=1e-3)
    for a, b in zip(weights, weights_captured, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
def test_no_sync_inside_an_iteration() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    device = torch.device("cuda", 0)
    for make in (lambda made: iterate, lambda made: CapturedIteration(*made)):
        made = parts(device, "method=opt")
        made[1].put_on(device)
        iteration = make(made)
        rows_of(made, iteration, 2)
        history, clock = History(("a", "b"), 10, device), Clock(device)
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(5):
                iteration(*made, history, clock)
        finally:
            torch.cuda.set_sync_debug_mode("default")
