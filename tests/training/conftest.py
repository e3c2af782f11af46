"""A tiny pair of domains and the settings to train on it in a moment."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import assert_same_rows, composed_into, signalled_at, summary, synthetic_domains

from robustmd.domains import DomainSet
from robustmd.training import evaluate as evaluation
from robustmd.training import plan as plan_module
from robustmd.training import run as run_module

SMALL = (
    "training.iterations=12",
    "training.batch_size=20",
    "runtime.threads=1",
    "evaluation.every=4",
    "logging.every=3",
    "checkpoint.every=5",
    "runtime.device=cpu",
)


@pytest.fixture
def domains() -> DomainSet:
    """The tiny domains, which every run in the test loads."""
    return synthetic_domains()


@pytest.fixture
def train(
    domains: DomainSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Trains with overrides, into tmp_path, on other `data` from then on; returns the outcome."""

    def load(found: DomainSet) -> None:
        for module in (plan_module, evaluation):
            monkeypatch.setattr(module, "load_domains", lambda config, say: found)

    def go(
        *overrides: str,
        outputs: Path = tmp_path / "outputs",
        data: DomainSet | None = None,
        screen: io.StringIO | None = None,
    ) -> run_module.Outcome:
        if data is not None:
            load(data)
        own_model = any(text.startswith("backbone=") for text in overrides)
        narrow = () if own_model else ("backbone.width=0.05",)
        config = composed_into(outputs, *SMALL, *narrow, *overrides)
        return run_module.run(config, Console(file=screen or io.StringIO(), width=300))

    load(domains)
    return go


@pytest.fixture
def gone_on(train: Callable[..., Any], tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Trains twice: undisturbed, and stopped by a signal in an iteration and then gone on with.
    Both have the same rows; returns their directories, that of the second first."""

    def go(*overrides: str, after: int, **given: Any) -> tuple[Path, Path]:
        whole = train(*overrides, outputs=tmp_path / "whole", **given).directory
        with signalled_at(after):
            outcome = train(*overrides)
        assert (outcome.status, outcome.exit_code) == ("interrupted", 143)
        assert summary(outcome.directory)["status"] == "interrupted"
        resumed = train(*overrides).directory
        assert f"resumed after iteration {after + 1}" in summary(resumed)["notes"]
        assert_same_rows(resumed, whole)
        return resumed, whole

    return go
