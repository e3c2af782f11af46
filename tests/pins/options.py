"""What the pinned runs train on, as a user's own module brings it in: imports=[pins.options].

A rebuild may edit two things here: where DomainSet comes from, and what `arrays_of` reads from it.
"""

import os
import signal

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import robustmd
from robustmd import adversary

try:
    from robustmd.data import DomainSet  # type: ignore[attr-defined]
except ImportError:
    from robustmd.domains import DomainSet


def brightness(count: int, noise: float, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Images uint8 [count, 32, 32, 3] of three classes that differ in brightness, and labels."""
    labels = np.arange(count) % 3
    level = 60.0 + 60.0 * labels[:, None, None, None]
    images = level + random.normal(0, noise, (count, 32, 32, 3))
    return images.clip(0, 255).astype(np.uint8), labels.astype(np.int64)


def two() -> DomainSet:
    """Two domains of 60 training images; b is noisy, so harder."""
    random = np.random.default_rng(0)
    noises = {"a": 5.0, "b": 90.0}
    return DomainSet.from_tensors(
        {
            name: (*brightness(60, noise, random), *brightness(30, noise, random))
            for name, noise in noises.items()
        }
    )


def many(count: int) -> DomainSet:
    """The same few images `count` times, each time darker."""
    random = np.random.default_rng(0)
    x, y, test_x, test_y = (*brightness(12, 5.0, random), *brightness(6, 5.0, random))

    def darker(images: np.ndarray, k: int) -> np.ndarray:
        return (images * (1 - 0.5 * k / count)).astype(np.uint8)

    return DomainSet.from_tensors(
        {f"d{k}": (darker(x, k), y, darker(test_x, k), test_y) for k in range(count)}
    )


def vectors(tokens: bool = False, numbers: bool = False) -> DomainSet:
    """Two domains of features [n, 8] or tokens [n, 8] with classes or two numbers as labels."""
    random = np.random.default_rng(0)

    def split(count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        x = random.normal(0, 1, (count, 8))
        y = x[:, :3] + noise * random.normal(0, 1, (count, 3))
        labels = y[:, :2].astype(np.float32) if numbers else y.argmax(1)
        return (x * 2).clip(-4, 3).astype(np.int64) + 4 if tokens else x.astype(np.float32), labels

    noises = {"clear": 0.1, "noisy": 1.0}
    return DomainSet.from_tensors(
        {name: (*split(60, noise), *split(30, noise)) for name, noise in noises.items()}
    )


SETS = {
    "two": two,
    "ten": lambda: many(10),
    "thirty": lambda: many(30),
    "features": vectors,
    "tokens": lambda: vectors(tokens=True),
    "numbers": lambda: vectors(numbers=True),
}


@robustmd.data("pinned")
class Pinned(robustmd.Settings):
    kind: str = "two"

    def load(self) -> DomainSet:
        return SETS[self.kind]()


@robustmd.backbone("pinned_linear")
class PinnedLinear(robustmd.Settings):
    def build(self, facts) -> nn.Module:
        return nn.Linear(8, facts.num_classes)


@robustmd.backbone("pinned_embedding")
class PinnedEmbedding(robustmd.Settings):
    def build(self, facts) -> nn.Module:
        return nn.Sequential(
            nn.Embedding(8, 4), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, facts.num_classes)
        )


@robustmd.loss("pinned_squares", unit="squares")
def pinned_squares(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (outputs - targets).square().mean(1)


@robustmd.loss("pinned_hinge", unit="points")
def pinned_hinge(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.multi_margin_loss(outputs, labels, reduction="none")


@robustmd.metric("pinned_error", unit="m", better="smaller", targets="numbers")
def pinned_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (outputs - targets).abs().mean()


@robustmd.metric("pinned_top2", unit="%", better="larger")
def pinned_top2(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return 100 * (logits.topk(2).indices == labels[:, None]).any(1).double().mean()


@robustmd.augment("pinned_shift", numbers=1)
def pinned_shift(images: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
    """Each image brighter by up to 20."""
    return (images + 20 * chance.view(-1, 1, 1, 1)).clamp(0, 255).to(images.dtype)


class SignalledAscent(adversary.ProjectedAscent):
    """opt; at iteration 6, counted from 0, PINS_SIGNAL=SIGTERM:6 sends the process that signal."""

    answers = 0

    def _respond(self, f: torch.Tensor) -> tuple[torch.Tensor, ...]:
        name, _, at = os.environ.get("PINS_SIGNAL", "").partition(":")
        if name and self.answers == int(at):
            os.kill(os.getpid(), getattr(signal, name))
        self.answers += 1
        return super()._respond(f)


@robustmd.method("pinned_opt")
class PinnedOpt(robustmd.Settings):
    lam: float = 1.0

    def build(self, facts) -> adversary.Adversary:
        return SignalledAscent(
            facts.num_domains, adversary.L2(), self.lam, total_steps=facts.iterations
        )
