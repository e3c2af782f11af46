"""Which iteration a run gets, and that getting there changes nothing and is booked apart."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from robustmd.errors import UserError
from robustmd.training.learner import Learner


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
    summary = json.loads((compiled.directory / "summary.json").read_text())
    assert passes == [True] * 13  # one to compile, 12 iterations; measurements stay as they are
    assert summary["seconds"]["start"] > 0
    plain = train("force=true")
    again = json.loads((plain.directory / "summary.json").read_text())
    assert again["seconds"]["start"] == 0
    assert again["final"] == summary["final"]


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
