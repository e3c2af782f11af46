"""One run while it is under way: the learner, the data it sees, and what gets written down."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from robustmd import settings
from robustmd.backbones.build import build_backbone
from robustmd.domains.domain import Domain, DomainSet
from robustmd.runs import checkpoints
from robustmd.runs.writer import RunDirectory
from robustmd.training.batches import BatchStream
from robustmd.training.clock import Clock
from robustmd.training.history import History
from robustmd.training.loop import Events, Learner, train
from robustmd.training.measurement import Measure, measure, worst
from robustmd.training.methods import build_adversary
from robustmd.training.predictions import predict
from robustmd.training.progress import RunProgress
from robustmd.training.resident import ResidentExamples
from robustmd.training.schedules import learning_rate_schedule
from robustmd.training.seeds import content_hash, stream, torch_seed
from robustmd.training.stopping import StopRequest

SPLITS = ("train", "val", "test")
TRAINING_PARTS = ("data", "model", "adversary")  # what "training time" is made of


class Session:
    """Everything that one run needs between its start and its end.

    Args:
        config: settled (checked against the data set's domains).
        domains: the data.
        device: where the model and, where they fit, the images go.
        directory: where the run is written.
    """

    def __init__(
        self,
        config: settings.Config,
        domains: DomainSet,
        device: torch.device,
        directory: RunDirectory,
    ) -> None:
        self.config, self.domains, self.device, self.directory = config, domains, device, directory
        self.splits = {split: _resident(domains, split, device) for split in SPLITS}
        self.trained = trained_domains(config, domains)
        self.batches = BatchStream(
            {name: len(self.splits["train"][name]) for name in self.trained},
            config.training.batch_size,
            config.seed,
        )
        self.learner = _learner(config, domains, len(self.trained), device)
        self.initial_weights_hash = _weights_hash(self.learner.model)
        self.history = History(self.trained, config.logging.every, device)
        self.clock = Clock(device)
        self.subset = _measured_positions(config, self.splits["train"])
        self.measures: dict[str, dict[str, Measure]] = {}  # the last measurement, by split
        self.stop = StopRequest()
        self._latest_weights: dict[str, float] = {}

    # --- the run -----------------------------------------------------------------------------

    def run(self, progress: RunProgress) -> None:
        """Train to the last iteration, measuring, logging and saving on the way."""
        self.progress = progress
        self.history.start_at(self.learner.iteration + 1)
        events = Events(
            is_due=self._is_due,
            measure=self._measure,
            log=self.log,
            checkpoint=self.save_checkpoint,
            checkpoint_every=self.config.checkpoint.every,
            full_losses=self._full_losses,
            check_stop=self.stop.check,
        )
        with self.stop:
            train(
                self.learner,
                self.config.training.iterations,
                self.batches,
                [self.splits["train"][name] for name in self.trained],
                self.history,
                self.clock,
                events,
            )
            self._finish()

    def _finish(self) -> None:
        self.log()
        checkpoints.save_final_model(self.directory.path, self.learner.model.state_dict())
        if self.config.evaluation.predictions:
            held_out = {split: self.splits[split] for split in ("val", "test")}
            self.directory.write_predictions(predict(self.learner.model, held_out))

    # --- events ------------------------------------------------------------------------------

    def _is_due(self, iteration: int) -> bool:
        last = iteration == self.config.training.iterations
        return last or iteration % self.config.evaluation.every == 0

    def _measure(self) -> None:
        self.log()
        iteration = self.learner.iteration
        is_last = iteration == self.config.training.iterations
        begun = time.perf_counter()
        self.measures = {
            split: measure(
                self.learner.model,
                domains,
                None if is_last or split != "train" else self.subset,
                between=self.stop.check,
            )
            for split, domains in self.splits.items()
            if domains
        }
        self.clock.add("measurement", time.perf_counter() - begun)
        seconds = f"{self.clock.seconds(*TRAINING_PARTS):.3f}"
        self.directory.append_metrics(
            (iteration, seconds, split, name, m.loss, m.accuracy, m.examples)
            for split, measures in self.measures.items()
            for name, m in measures.items()
        )
        worst_now = worst(self.measures["train"])
        self.progress.measured(iteration, worst_now["loss"], worst_now["accuracy"])

    def log(self) -> None:
        """Read the device's history and append what falls on a log interval."""
        self.clock.settle()
        every, last = self.config.logging.every, self.config.training.iterations
        for row in self.history.read():
            self._latest_weights = dict(zip(self.trained, row.weights, strict=True))
            if row.iteration == 1 or row.iteration % every == 0 or row.iteration == last:
                self.directory.append_weights(
                    (row.iteration, name, p, loss)
                    for name, p, loss in zip(
                        self.trained, row.weights, row.batch_losses, strict=True
                    )
                )
        self.progress.iterated(self.learner.iteration, self._latest_weights)

    def _full_losses(self) -> torch.Tensor:
        """f(W_t) over the trained domains' whole training sets; the method's own time."""
        begun = time.perf_counter()
        splits = {name: self.splits["train"][name] for name in self.trained}
        measures = measure(self.learner.model, splits, between=self.stop.check)
        self.clock.add("adversary", time.perf_counter() - begun)
        return torch.tensor([m.loss for m in measures.values()], device=self.device)

    # --- checkpoints -------------------------------------------------------------------------

    def save_checkpoint(self) -> None:
        """Write down all that the run needs to go on as if nothing had happened."""
        self.log()
        learner = self.learner
        state = {
            "iteration": learner.iteration,
            "measured": learner.measured,
            "model": learner.model.state_dict(),
            "optimizer": learner.optimizer.state_dict(),
            "schedule": learner.schedule.state_dict(),
            "adversary": learner.adversary.state_dict(),
            "clock": self.clock.state_dict(),
            "lengths": self.directory.lengths(),
        }
        checkpoints.save(self.directory.path, learner.iteration, state)

    def load_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint: rows written after it are cut off."""
        learner = self.learner
        learner.iteration, learner.measured = state["iteration"], state["measured"]
        learner.model.load_state_dict(state["model"])
        learner.optimizer.load_state_dict(state["optimizer"])
        learner.schedule.load_state_dict(state["schedule"])
        learner.adversary.load_state_dict(state["adversary"])
        self.clock.load_state_dict(state["clock"])
        self.directory.cut_back(state["lengths"])


def trained_domains(config: settings.Config, domains: DomainSet) -> tuple[str, ...]:
    """The domains that the model trains on: all, or Individual's one."""
    if config.method.name == "individual":
        return (config.method.domain,)
    return tuple(domains.names)


def _resident(
    domains: DomainSet, split: str, device: torch.device
) -> dict[str, ResidentExamples]:
    def of(domain: Domain) -> ResidentExamples | None:
        examples = domain.split(split)
        return None if examples is None else ResidentExamples(examples, device)

    found = {domain.name: of(domain) for domain in domains}
    return {name: examples for name, examples in found.items() if examples is not None}


def _learner(
    config: settings.Config, domains: DomainSet, trained: int, device: torch.device
) -> Learner:
    torch.manual_seed(torch_seed(config.seed, "initial weights"))  # on the host, for any device
    model = build_backbone(config.backbone, len(domains.classes), domains.image_size)
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    training = config.training
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
    )
    schedule = learning_rate_schedule(optimizer, training.schedule, training.iterations)
    adversary = build_adversary(config.method, trained, training.iterations).to(device)
    return Learner(model, optimizer, schedule, adversary)


def _weights_hash(model: nn.Module) -> str:
    return content_hash(*(p.detach().cpu().numpy() for p in model.parameters()))


def _measured_positions(
    config: settings.Config, splits: Mapping[str, ResidentExamples]
) -> dict[str, torch.Tensor]:
    """A fixed random subset of each training set that is larger than `evaluation.examples`."""
    limit = config.evaluation.examples
    return {
        name: torch.from_numpy(
            stream(config.seed, f"measurement/{name}").permutation(len(split))[:limit].copy()
        ).sort()[0]
        for name, split in splits.items()
        if len(split) > limit
    }


def parameters(model: nn.Module) -> int:
    """How many numbers training changes."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def as_plain(measures: Mapping[str, Mapping[str, Measure]]) -> dict[str, Any]:
    """Measures as summary.json holds them."""
    return {
        split: {name: dataclasses.asdict(m) for name, m in domains.items()}
        for split, domains in measures.items()
    }
