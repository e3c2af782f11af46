"""A tiny pair of domains and the settings to train on it in a moment."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import composed, synthetic_domains

from robustmd.domains.domain import DomainSet
from robustmd.training import run as run_module


@pytest.fixture
def domains(monkeypatch: pytest.MonkeyPatch) -> DomainSet:
    """The tiny domains, also what every run in the test loads."""
    found = synthetic_domains()
    monkeypatch.setattr(run_module, "load_domains", lambda config, say: found)
    return found


@pytest.fixture
def train(
    domains: DomainSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Trains with overrides, into tmp_path, on other `data` from then on; returns the outcome."""

    def go(
        *overrides: str, outputs: Path = tmp_path / "outputs", data: DomainSet | None = None
    ) -> run_module.Outcome:
        if data is not None:
            monkeypatch.setattr(run_module, "load_domains", lambda config, say: data)
        small = [
            "training.iterations=12",
            "training.batch_size=20",
            "backbone.width=0.05",
            "runtime.threads=1",
            "evaluation.every=4",
            "logging.every=3",
            "checkpoint.every=5",
            "runtime.device=cpu",
            f"paths.outputs={outputs}",
        ]
        return run_module.run(composed(*small, *overrides), Console(file=io.StringIO()))

    return go
