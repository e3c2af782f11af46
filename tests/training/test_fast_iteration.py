"""Which iteration a run gets, and that getting there changes nothing and is booked apart."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny import parts, rows_of, summary
from torch import nn

from robustmd.errors import UserError
from robustmd.training import fast_iteration, images
from robustmd.training.cuda_graphs import CapturedIteration
from robustmd.training.learner import Learner
from robustmd.training.loop import iterate


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
    compiled = train("runtime.compile=true")
    there = summary(compiled.directory)
    assert passes == [True] * 14  # two to compile, 12 iterations; measurements stay as they are
    assert there["seconds"]["start"] > 0
    plain = train("force=true")
    again = summary(plain.directory)
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


CPU = torch.device("cpu")


def captured_with(
    monkeypatch: pytest.MonkeyPatch, capture: Callable[[Any], Any], method: str = "opt"
) -> tuple[Any, list[str]]:
    """The iteration that a run gets whose graphs are what `capture` makes, and what was said."""
    made, said = parts(CPU, f"method={method}"), []
    monkeypatch.setattr(fast_iteration, "why_not", lambda *_: None)
    monkeypatch.setattr(
        fast_iteration, "CapturedIteration", functools.partial(CapturedIteration, capture=capture)
    )
    before = made[0].weights_hash(), made[0].adversary.p.clone()
    plain = fast_iteration.Effect.of(iterate, *made)
    iteration = fast_iteration._captured(*made, said.append, plain)
    assert made[0].weights_hash() == before[0]
    assert torch.equal(made[0].adversary.p, before[1])
    assert made[0].iteration == 0
    return iteration, said


@pytest.mark.parametrize("method", ["even", "opt", "minimax", "term"])
def test_a_graph_that_does_what_a_plain_iteration_does_is_taken(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    iteration, said = captured_with(monkeypatch, lambda part: part, method)
    assert isinstance(iteration, CapturedIteration)
    assert not said


@pytest.mark.parametrize("part", ["_data", "_answer", "_descend"])
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
        if part.__name__ == "_descend":
            raise error
        return part

    iteration, (line,) = captured_with(monkeypatch, failing)
    assert iteration is iterate
    assert line.startswith("no CUDA graph: ")
    assert "\n" not in line


def broken_step(learner: Learner, works: Callable[[Learner], bool], error: Exception) -> None:
    """Let the optimizer raise until `works`."""

    def check(*_: Any) -> None:
        if not works(learner):
            raise error

    learner.optimizer.register_step_pre_hook(check)


def is_contiguous(learner: Learner) -> bool:
    return all(p.is_contiguous() for p in learner.model.parameters())


@pytest.mark.parametrize(
    ("works", "dropped"),
    [
        (lambda learner: True, []),
        (lambda learner: not learner.optimizer.param_groups[0]["fused"], ["fused SGD"]),
        (is_contiguous, ["fused SGD", "channels_last"]),
    ],
)
def test_a_choice_for_speed_that_fails_is_dropped_with_a_line(
    works: Callable[[Learner], bool], dropped: list[str]
) -> None:
    made, said = parts(CPU, "method=minimax"), []
    broken_step(made[0], works, RuntimeError("no kernel\nat all"))
    weights = made[0].weights_hash()
    fast_iteration._plain_effect(*made, said.append)
    assert said == [f"without {name}: no kernel" for name in dropped]
    assert made[0].weights_hash() == weights
    rows_of(made, iterate, 2)  # and so it goes on


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), RuntimeError("always")])
def test_what_plain_torch_cannot_do_either_is_raised(error: RuntimeError) -> None:
    made = parts(CPU)
    broken_step(made[0], lambda learner: False, error)
    with pytest.raises(type(error)):
        fast_iteration._plain_effect(*made, lambda line: None)


def test_a_copy_that_cannot_be_pinned_is_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("CUDA error: out of memory\nand more")

    made: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", full)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *to, **how: made.append((to, how)))
    images.sent(torch.ones(2), torch.device("cuda"))
    assert made == [((torch.device("cuda"),), {})]  # not non_blocking
    assert images.why_not_pinned() == "CUDA error: out of memory"
