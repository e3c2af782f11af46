"""The loops that are compared, on random images: the bare model, ours, and the usual one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from robustmd.adversary import project_simplex
from robustmd.backbones.alexnet import AlexNet
from robustmd.backbones.resnet18 import ResNet18
from robustmd.bench.timing import Step
from robustmd.config import settings
from robustmd.data_sets.digits_mini import DigitsMini
from robustmd.data_sets.noise_and_rotation import rotated_grid
from robustmd.domains.domain import DomainSet, Examples
from robustmd.registry import METHODS
from robustmd.training.batches import BatchStream
from robustmd.training.fast_iteration import WARM_UP, GraphCapture, ready_iteration, side_stream
from robustmd.training.history import Clock, History
from robustmd.training.learner import build_learner
from robustmd.training.loop import Parts
from robustmd.training.pool import TrainingPool, resident_splits

EXAMPLES = 2_000  # of each domain: the images' content does not matter, nor does their number
NAIVE_LAM = 1.0


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
        parts = {name: schema() for name, schema in settings.SECTIONS.items()}
        parts |= {"data": DigitsMini(), "backbone": self.backbone, "method": METHODS[method]()}
        parts["training"] = settings.Training(iterations=10**6, batch_size=self.batch_size)
        parts["runtime"] = settings.Runtime(precision=precision)
        return settings.Config(**parts)


def workloads(device: torch.device) -> tuple[Workload, ...]:
    """AlexNet on 32-pixel images and ResNet-18 on 64-pixel ones, as the paper's two data sets have
    them; batches that fit the device."""
    batch_size = 200 if device.type == "cuda" else 40
    return (
        Workload("alexnet/32", AlexNet(), 32, 200),
        Workload("resnet18/64", ResNet18(weights="none"), 64, batch_size),
    )


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


def grid_domains(angles: int, sigmas: int, side: int) -> DomainSet:
    """K = angles × sigmas domains as of `data=digits_rotated`, on one array of random pixels."""
    count = max(EXAMPLES, angles * sigmas)
    base = random_domains(1, side, count, test_examples=count)
    turns = [360.0 * k / angles for k in range(angles)]
    return rotated_grid(base, base.names[0], turns, list(range(sigmas)), 0, "grid")


def bare(workload: Workload, domains: DomainSet, device: torch.device, precision: str) -> Step:
    """The limit: forward, backward and SGD on one batch that already lies on the device.

    On CUDA it is a graph: there the host's launches cost more than the kernels.
    """
    learner = build_learner(workload.config("even", precision), domains, len(domains), device)
    pool = TrainingPool([*resident_splits(domains, device)["train"].values()])
    trained = {domain.name: domain.train for domain in domains}
    images, labels = pool.gather(BatchStream(trained, workload.batch_size, seed=0).draw(0))

    def step() -> None:
        loss = functional.cross_entropy(learner.logits(images), labels)
        learner.optimizer.zero_grad()
        loss.backward()
        learner.optimizer.step()

    if device.type != "cuda":
        return step
    with side_stream(device):
        for _ in range(WARM_UP):
            step()
    return GraphCapture()(step)


def ours(
    workload: Workload, domains: DomainSet, device: torch.device, method: str, precision: str
) -> Step:
    """An iteration of `robustmd train`: batch, model, adversary, log; read every 10 iterations.

    As `train` has it by default: on CUDA captured.
    """
    config = workload.config(method, precision)
    learner = build_learner(config, domains, len(domains), device)
    pool = TrainingPool([*resident_splits(domains, device)["train"].values()])
    trained = {domain.name: domain.train for domain in domains}
    drawn = min(workload.batch_size, len(domains))
    batches = BatchStream(trained, workload.batch_size, 0, drawn)
    history = History(domains.names, config.logging.every, device)
    parts = Parts(learner, batches, pool, history, Clock(device))
    iteration = ready_iteration(config.runtime, parts, print)

    def step() -> None:
        iteration(parts)
        if history.full:
            parts.clock.settle()
            history.read()

    return step


class ImageDataset(Dataset[tuple[torch.Tensor, int]]):
    """One image at a time, scaled on the host, as `torchvision.transforms` does."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pixels = np.array(self.examples.images[index])
        image = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255.0)
        return image.sub(0.5).div(0.25), int(self.examples.targets[index])


def loader_workers() -> int:
    """Loader processes for each domain: none where they would only take the model's cores."""
    return 0 if (os.cpu_count() or 1) <= 2 else 2


def naive(workload: Workload, domains: DomainSet, device: torch.device) -> Step:
    """The loop that public implementations of group DRO share, as they write it: a `DataLoader` and
    a forward pass for every domain, losses read on the host in every iteration.

    It trains the same model on the same batch sizes with Mixture-Opt, λ = 1.
    """
    learner = build_learner(workload.config("even"), domains, len(domains), device)
    batches = [
        _endless(
            DataLoader(
                ImageDataset(domain.train),
                batch_size=workload.batch_size // len(domains),
                shuffle=True,
                drop_last=True,
                num_workers=loader_workers(),
                persistent_workers=loader_workers() > 0,
            )
        )
        for domain in domains
    ]
    p = torch.full((len(domains),), 1.0 / len(domains))
    iteration = 0

    def step() -> None:
        nonlocal p, iteration
        iteration += 1
        losses = []
        for batch in batches:
            images, labels = next(batch)
            logits = learner.model(images.to(device))
            losses.append(functional.cross_entropy(logits, labels.to(device)))
        objective = sum(w.item() * loss for w, loss in zip(p, losses, strict=True))
        learner.optimizer.zero_grad()
        objective.backward()  # type: ignore[union-attr]
        learner.optimizer.step()
        read = torch.tensor([loss.item() for loss in losses])
        p = project_simplex(p + (read - NAIVE_LAM * (p - 1.0 / len(p))) / (NAIVE_LAM * iteration))

    return step


def _endless(loader: DataLoader[tuple[torch.Tensor, int]]) -> Iterator[tuple[torch.Tensor, ...]]:
    while True:
        yield from loader
