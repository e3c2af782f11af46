"""The fast iteration does what the plain one does, and getting there leaves no trace."""

import functools
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
import torch
from tiny import parts, rows_of, summary
from torch import nn

from robustmd.errors import UserError
from robustmd.training import fast_iteration
from robustmd.training.batches import sent
from robustmd.training.fast_iteration import CapturedIteration
from robustmd.training.learner import Learner
from robustmd.training.loop import iterate

CPU = torch.device("cpu")
OPTIMIZERS = ["adamw", "nadam", "rmsprop"]
METHODS = [f"method={name}" for name in ("even", "opt", "minimax", "term", "oracle", "famo")]


def numbers(state: Any) -> Any:
    """A state with the text of its tensors in their place."""
    if isinstance(state, dict):
        return {key: numbers(value) for key, value in state.items()}
    return str(state.tolist()) if isinstance(state, torch.Tensor) else state  # NaN = NaN


@pytest.fixture
def cuda() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device("cuda", 0)


def test_compiled_training_passes_are_used_and_booked_apart(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[bool] = []

    class Compiled(nn.Module):
        """What torch.compile gives, without a compiler."""

        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.inner = model

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            passes.append(self.inner.training)
            logits: torch.Tensor = self.inner(images)
            return logits

    monkeypatch.setattr(torch, "compile", Compiled)
    there = summary(train("runtime.compile=true").directory)
    assert passes == [True] * 14  # two to compile, 12 iterations; measurements stay as they are
    assert there["seconds"]["start"] > 0
    again = summary(train("force=true").directory)
    assert again["seconds"]["start"] == 0
    assert again["final"] == there["final"]


def test_no_compiler_is_one_line(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class InductorError(RuntimeError):
        __module__ = "torch._inductor.exc"

    def broken(self: Learner) -> None:
        def fail(images: torch.Tensor) -> torch.Tensor:
            raise InductorError("no working C++ compiler found\nand much more")

        self.training_logits = fail

    monkeypatch.setattr(Learner, "compile", broken)
    with pytest.raises(UserError, match=r"does not work here \(no working C\+\+ compiler found\)"):
        train("runtime.compile=true")


def stepping(optimizer: str) -> list[str]:
    """A gradient that is clipped, a moving average and rates that rise and fall."""
    more = ["warmup=5", "schedule=linear", "clip_norm=0.5", "ema=0.9", "head_learning_rate=0.002"]
    more += [f"optimizer={optimizer}", "learning_rate=0.001"]
    return [f"training.{setting}" for setting in more]


CASES = [[method] for method in METHODS] + [stepping(optimizer) for optimizer in OPTIMIZERS]


@pytest.mark.parametrize(("begun", "overrides"), [*zip(cycle([0, 5]), CASES, strict=False)])
def test_replays_equal_plain_iterations(begun: int, overrides: list[str]) -> None:
    """With a capture that only keeps the step: same rows, same weights, bit for bit, also from the
    middle of a run; and each replay has the learning rate of its own iteration."""
    plain, captured = (parts(CPU, "training.schedule=cosine", *overrides) for _ in range(2))
    for made in (plain, captured):
        rows_of(made, iterate, begun)
    replayed = CapturedIteration(captured, capture=lambda step: step)
    assert rows_of(captured, replayed, 7)[0] == rows_of(plain, iterate, 7)[0]
    assert numbers(captured.learner.state_dict()) == numbers(plain.learner.state_dict())


def test_the_parts_are_captured_in_the_order_they_run() -> None:
    """Graphs that share memory must be replayed in the order of their capture."""
    for method, last in (("method=opt", "answer"), ("method=term", "descend")):
        order: list[str] = []

        def note(part: Callable[[], None], order: list[str] = order) -> Callable[[], None]:
            order.append(part.__name__)
            return part

        CapturedIteration(parts(CPU, method), capture=note)
        assert order[:2] == ["gather", "forward"]
        assert order[-1] == last


def captured_with(
    monkeypatch: pytest.MonkeyPatch, capture: Callable[[Any], Any], method: str = "opt"
) -> tuple[Any, list[str]]:
    """The iteration that a run gets whose graphs are what `capture` makes, and what was said."""
    made, said = parts(CPU, f"method={method}"), []
    monkeypatch.setattr(
        fast_iteration, "CapturedIteration", functools.partial(CapturedIteration, capture=capture)
    )
    before = numbers(made.learner.state_dict())
    iteration = fast_iteration._captured(made, said.append)
    assert numbers(made.learner.state_dict()) == before
    return iteration, said


@pytest.mark.parametrize("method", ["even", "opt", "minimax", "term"])
def test_a_graph_that_does_what_a_plain_iteration_does_is_taken(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    iteration, said = captured_with(monkeypatch, lambda part: part, method)
    assert isinstance(iteration, CapturedIteration)
    assert not said


@pytest.mark.parametrize("part", ["gather", "answer", "descend"])
def test_a_graph_that_leaves_something_out_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def forgetful(captured: Callable[[], None]) -> Callable[[], None]:
        return (lambda: None) if captured.__name__ == part else captured

    iteration, (line,) = captured_with(monkeypatch, forgetful)
    assert iteration is iterate
    assert "do not do what plain ones do" in line


@pytest.mark.parametrize(
    "error", [RuntimeError("capture\nfailed"), KeyError("capture"), TypeError()]
)
def test_whatever_a_capture_raises_the_run_goes_on_plainly(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(part: Callable[[], None]) -> Callable[[], None]:
        if part.__name__ == "descend":
            raise error
        return part

    iteration, (line,) = captured_with(monkeypatch, failing)
    assert iteration is iterate
    assert line.startswith("no CUDA graph: ")
    assert "\n" not in line


def test_a_copy_that_cannot_be_pinned_is_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("CUDA error: out of memory\nand more")

    made: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", full)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *to, **how: made.append((to, how)))
    sent(torch.ones(2), torch.device("cuda"))
    assert made == [((torch.device("cuda"),), {})]  # not non_blocking


@pytest.mark.gpu
@pytest.mark.parametrize("overrides", CASES, ids=lambda case: case[-2] if case[1:] else case[0])
def test_cuda_graphs_equal_plain_iterations(cuda: torch.device, overrides: list[str]) -> None:
    plain, captured = parts(cuda, *overrides), parts(cuda, *overrides)
    rows, weights = rows_of(plain, iterate)
    rows_captured, weights_captured = rows_of(captured, CapturedIteration(captured))
    for a, b in zip(rows, rows_captured, strict=True):
        assert a.batch_losses == pytest.approx(b.batch_losses, rel=1e-3)
        assert a.weights == pytest.approx(b.weights, abs=1e-3)
    for a, b in zip(weights, weights_captured, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("make", [lambda made: iterate, CapturedIteration])
@pytest.mark.parametrize("overrides", [["method=opt"], *CASES[len(METHODS) :]])
def test_no_sync_inside_an_iteration(
    cuda: torch.device, overrides: list[str], make: Callable[..., Any]
) -> None:
    made = parts(cuda, *overrides, "training.schedule=cosine")
    made.batches.put_on(cuda)
    iteration = make(made)
    rows_of(made, iteration, 2)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            iteration(made)
    finally:
        torch.cuda.set_sync_debug_mode("default")
