"""What the training tests share and import by name: tiny domains, settings, iterations, rows."""

import csv
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from robustmd.config import settings
from robustmd.config.check import make_config
from robustmd.domains import DomainSet
from robustmd.training import plan as plan_module
from robustmd.training.data import Batches
from robustmd.training.plan import make_plan
from robustmd.training.progress import StopRequest
from robustmd.training.run import Run

TINY = ["backbone.width=0.05", "training.batch_size=20", "runtime.device=cpu", "runtime.threads=1"]

# An optimizer with all that it can have.
ADAMW = [
    "training.optimizer=adamw",
    "training.learning_rate=0.003",
    "training.head_learning_rate=0.01",
    "training.decay_all=false",
    "training.schedule=linear",
    "training.warmup=6",
    "training.clip_norm=1",
    "training.ema=0.9",
]


def synthetic_domains(seed: int = 0, examples: int = 60) -> DomainSet:
    """Two domains, three classes that differ in brightness; domain b is noisy, so harder."""
    random = np.random.default_rng(seed)

    def split(count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) % 3
        images = (
            60.0 + 60.0 * labels[:, None, None, None] + random.normal(0, noise, (count, 32, 32, 3))
        )
        return images.clip(0, 255).astype(np.uint8), labels.astype(np.int64)

    def domain(noise: float) -> tuple[np.ndarray, ...]:
        return (*split(examples, noise), *split(examples // 2, noise))

    return DomainSet.from_tensors({"a": domain(5.0), "b": domain(90.0)}, name="digits_mini")


def many(count: int = 30) -> DomainSet:
    """`count` copies of the tiny domains' images, each its own brightness."""
    base = synthetic_domains(examples=12)["a"]

    def darker(images: np.ndarray, k: int) -> np.ndarray:
        return (images * (1 - 0.5 * k / count)).astype(np.uint8)

    return DomainSet.from_tensors(
        {
            f"d{k}": (
                darker(base.train.images, k),
                base.train.targets,
                darker(base.test.images, k),
                base.test.targets,
            )
            for k in range(count)
        },
        name="digits_mini",
    )


def composed(*overrides: str) -> settings.Config:
    """The typed config that these overrides give on the command line."""
    return make_config(overrides)


def composed_into(outputs: Path, *overrides: str) -> settings.Config:
    """The same, with runs written to `outputs`; what is composed again costs nothing."""
    config = deepcopy(_composed_once(*overrides))
    config.paths.outputs = str(outputs)
    return config


_composed_once = cache(composed)


def run_under_way(
    outputs: Path, *overrides: str, domains: DomainSet | None = None, device: str = "cpu"
) -> Run:
    """A run on the tiny domains before its first iteration, without a directory."""
    config = composed_into(
        outputs, *TINY, "training.iterations=40", f"runtime.device={device}", *overrides
    )
    with pytest.MonkeyPatch.context() as patch:
        made = domains or synthetic_domains()
        patch.setattr(plan_module, "load_domains", lambda *_: made)
        run = Run(make_plan(config, [], lambda _: None), StopRequest(), Console(quiet=True))
    run.batches.go_to(0)
    return run


def iterated(run: Run, count: int, step: Any = None) -> tuple[Any, list[torch.Tensor]]:
    """What `count` iterations log, and the model's parameters after them."""
    for _ in range(count):
        run.iterate(step or run.step)
    rows = run.log[:count].tolist()
    run.log_row.zero_()
    return rows, [p.detach().clone() for p in run.learner.model.parameters()]


def rows(directory: Path, name: str = "metrics.csv") -> list[dict[str, str]]:
    """A CSV file's rows but for the seconds, which no two runs share."""
    with (directory / name).open(newline="") as stream:
        return [
            {key: value for key, value in row.items() if key != "seconds"}
            for row in csv.DictReader(stream)
        ]


def assert_same_rows(one: Path, other: Path) -> None:
    """Two runs' measurements and weights, byte for byte but for the seconds."""
    for name in ("metrics.csv", "weights.csv"):
        assert rows(one, name) == rows(other, name)


def summary(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "summary.json").read_text("utf-8"))


@contextmanager
def signalled_at(iteration: int, name: str = "SIGTERM") -> Iterator[None]:
    """Within it the process gets that signal when an iteration draws its batch."""
    go_to = Batches.go_to

    def interrupting(self: Batches, at: int) -> None:
        if at == iteration:
            os.kill(os.getpid(), getattr(signal, name))
        go_to(self, at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batches, "go_to", interrupting)
        yield
