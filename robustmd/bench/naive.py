"""The baseline: the loop that public implementations of group DRO share, written as they write it.

A `DataLoader` for every domain, one forward pass for every domain, and the losses read on the host
in every iteration. It trains the same model on the same batch sizes with the same algorithm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from robustmd.adversary import project_simplex
from robustmd.bench.timing import Step
from robustmd.bench.workload import Workload
from robustmd.domains.domain import DomainSet, Examples
from robustmd.training.learner import build_learner

LAM = 1.0


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


def workers() -> int:
    """Loader processes for each domain: none where they would only take the model's cores."""
    cores = os.cpu_count() or 1
    return 0 if cores <= 2 else 2


def naive(workload: Workload, domains: DomainSet, device: torch.device) -> Step:
    """An iteration of Mixture-Opt with λ = 1 in the common style."""
    learner = build_learner(workload.config("even"), domains, len(domains), device)
    share = workload.batch_size // len(domains)
    loaders = [
        DataLoader(
            ImageDataset(domain.train),
            batch_size=share,
            shuffle=True,
            drop_last=True,
            num_workers=workers(),
            persistent_workers=workers() > 0,
        )
        for domain in domains
    ]
    batches = [_endless(loader) for loader in loaders]
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
        p = project_simplex(p + (read - LAM * (p - 1.0 / len(p))) / (LAM * iteration))

    return step


def _endless(loader: DataLoader[tuple[torch.Tensor, int]]) -> Iterator[tuple[torch.Tensor, ...]]:
    while True:
        yield from loader
