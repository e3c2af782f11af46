"""The loops that are compared: the bare model, ours, and the one that is commonly written."""

from __future__ import annotations

import torch
from torch.nn import functional

from robustmd.bench.timing import Step
from robustmd.bench.workload import Workload
from robustmd.config import settings
from robustmd.domains.domain import DomainSet
from robustmd.training.batches import BatchStream
from robustmd.training.cuda_graphs import WARM_UP, GraphCapture, side_stream
from robustmd.training.fast_iteration import ready_iteration
from robustmd.training.history import Clock, History
from robustmd.training.images import resident_splits
from robustmd.training.learner import build_learner
from robustmd.training.pool import TrainingPool


def bare(workload: Workload, domains: DomainSet, device: torch.device, precision: str) -> Step:
    """The limit: forward, backward and SGD on one batch that already lies on the device."""
    learner = build_learner(workload.config("even", precision), domains, len(domains), device)
    pool = TrainingPool([*resident_splits(domains, device)["train"].values()])
    sizes = {domain.name: len(domain.train) for domain in domains}
    batches = BatchStream(sizes, workload.batch_size, seed=0)
    images, labels = pool.gather(batches.draw(0))

    def step() -> None:
        loss = functional.cross_entropy(learner.logits(images), labels)
        learner.optimizer.zero_grad()
        loss.backward()
        learner.optimizer.step()

    return _captured(step, device)


def _captured(step: Step, device: torch.device) -> Step:
    """The limit on CUDA is a graph: there the host's launches cost more than the kernels."""
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
    drawn = settings.domains_per_batch(config, len(domains))
    batches = BatchStream.of(trained, workload.batch_size, 0, drawn)
    history = History(domains.names, config.logging.every, device)
    clock = Clock(device)
    iteration = ready_iteration(config.runtime, learner, batches, pool, clock, print)

    def step() -> None:
        iteration(learner, batches, pool, history, clock)
        if history.full:
            clock.settle()
            history.read()

    return step
