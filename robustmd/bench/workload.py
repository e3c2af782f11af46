"""What is timed: settings and random images of the sizes that the paper's two data sets have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from robustmd.backbones.alexnet import AlexNet
from robustmd.backbones.resnet18 import ResNet18
from robustmd.config import settings
from robustmd.data_sets.digits_mini import DigitsMini
from robustmd.domains.domain import DomainSet
from robustmd.domains.noise_and_rotation import rotated_grid
from robustmd.registry import METHODS

EXAMPLES = 2_000  # of each domain: the images' content does not matter, nor does their number


@dataclass(frozen=True)
class Workload:
    """A model and the batches it trains on.

    Attributes:
        name: as the table shows it.
        backbone: the `backbone` group's option.
        side: images are side × side pixels.
        batch_size: B, examples of all domains together.
    """

    name: str
    backbone: Any
    side: int
    batch_size: int

    def config(self, method: str, precision: str = "fp32") -> settings.Config:
        """A run of `method` on this workload, as if its YAML had been composed."""
        return settings.Config(
            data=DigitsMini(),
            backbone=self.backbone,
            method=METHODS[method](),
            training=settings.Training(iterations=10**6, batch_size=self.batch_size),
            evaluation=settings.Evaluation(),
            runtime=settings.Runtime(precision=precision),
            logging=settings.Logging(),
            checkpoint=settings.Checkpoint(),
            paths=settings.Paths(),
        )


def workloads(device: torch.device) -> tuple[Workload, ...]:
    """AlexNet on 32-pixel images and ResNet-18 on 64-pixel ones; batches that fit the device."""
    on_gpu = device.type == "cuda"
    return (
        Workload("alexnet/32", AlexNet(), 32, 200),
        Workload("resnet18/64", ResNet18(weights="none"), 64, 200 if on_gpu else 40),
    )


def grid_domains(angles: int, sigmas: int, side: int) -> DomainSet:
    """K = angles × sigmas domains as of `data=digits_rotated`, on one array of random pixels."""
    count = max(EXAMPLES, angles * sigmas)
    base = random_domains(1, side, count, test_examples=count)
    turns = [360.0 * k / angles for k in range(angles)]
    return rotated_grid(base, base.names[0], turns, list(range(sigmas)), 0, "grid")


def random_domains(
    num_domains: int, side: int, examples: int = EXAMPLES, test_examples: int = 10
) -> DomainSet:
    """K domains of random pixels and labels of 10 classes, the same ones every time."""
    random = np.random.default_rng(0)

    def split(count: int) -> tuple[np.ndarray, np.ndarray]:
        images = random.integers(0, 256, (count, side, side, 3), dtype=np.uint8)
        return images, np.arange(count) % 10

    few = max(10, examples // num_domains)
    return DomainSet.from_tensors(
        {f"domain_{k}": (*split(few), *split(test_examples)) for k in range(num_domains)},
        name="random",
        classes=[str(c) for c in range(10)],
    )
