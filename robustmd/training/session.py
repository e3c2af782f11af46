"""One run while it is under way: the learner, the data it sees, and what gets written down."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from robustmd import settings
from robustmd.domains.domain import DomainSet
from robustmd.runs import checkpoints
from robustmd.runs.identity import config_hash
from robustmd.runs.run import one_class_words
from robustmd.runs.writer import RunDirectory
from robustmd.training.batches import BLOCK, BatchStream
from robustmd.training.clock import Clock
from robustmd.training.history import Diverged, History
from robustmd.training.learner import build_learner
from robustmd.training.loop import Events, train
from robustmd.training.measurement import Measure, measure, worst
from robustmd.training.pool import TrainingPool
from robustmd.training.predictions import predict
from robustmd.training.progress import RunProgress
from robustmd.training.resident import ResidentExamples, resident_splits, where_images_are
from robustmd.training.seeds import generator_states, set_generator_states, stream
from robustmd.training.starting import ready_iteration
from robustmd.training.stopping import StopRequest
from robustmd.training.watch import WeightsWatch

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted
TRAINING_PARTS = ("data", "model", "adversary")  # what "training time" is made of


class Session:
    """Everything that one run needs between its start and its end.

    Args:
        config: settled (checked against the data set's domains).
        domains: the data.
        device: where the model and, where they fit, the images go.
        directory: where the run is written.
        stop: knows of the signals that have come.
    """

    def __init__(
        self,
        config: settings.Config,
        domains: DomainSet,
        device: torch.device,
        directory: RunDirectory,
        stop: StopRequest,
    ) -> None:
        self.config, self.domains, self.device, self.directory = config, domains, device, directory
        self.stop = stop
        self.splits = resident_splits(domains, device, config.seed)
        self.trained = settings.trained_domains(config, domains.names)
        self.unseen = settings.unseen_domains(config, domains.names)
        self.batches = BatchStream.of(
            {name: domains[name].train for name in self.trained},
            config.training.batch_size,
            config.seed,
            settings.domains_per_batch(config, len(self.trained)),
        )
        self.pool = TrainingPool([self.splits["train"][name] for name in self.trained])
        sizes = [len(self.splits["train"][name]) for name in self.trained]
        self.learner = build_learner(config, domains, len(self.trained), device, sizes)
        self.initial_weights_hash = self.learner.weights_hash()
        self.watch = WeightsWatch(self.learner.adversary, self.trained, config.training.iterations)
        adversary = self.learner.adversary
        self.watched = adversary.learns and not adversary.signed
        self.weight_sums = [0.0] * len(self.trained)  # Σ_t p_t over the iterations read so far
        self.marginal_error = 0.0  # the largest seen that Sinkhorn's sweeps left, for OT
        self.history = History(
            self.trained, min(config.logging.every, config.training.iterations), device
        )
        self.clock = Clock(device)
        self.subset = _measured_positions(config, self.splits["train"])
        self.measures: dict[str, dict[str, Measure]] = {}  # the last measurement, by split
        self.resumed: list[str] = []  # a note for every time that the run was taken up again
        self._saved_at = time.monotonic()
        self.data_warnings: list[str] = []  # of the data, for the summary
        self._announced: set[str] = set()
        first = self.learner.adversary.weights.tolist()
        self._latest_weights = dict(zip(self.trained, first, strict=True))

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
            checkpoint_is_due=self._checkpoint_is_due,
            full_losses=self._full_losses,
            check_stop=self.stop.check,
        )
        parts = self.learner, self.batches, self.pool
        if (placed := where_images_are(self.splits)) is not None:
            self._note(placed)
        iteration = ready_iteration(self.config.runtime, *parts, self.clock, self._note)
        total = self.config.training.iterations
        train(self.learner, total, *parts[1:], self.history, self.clock, events, iteration)
        self._finish()

    def _note(self, line: str) -> None:
        self.directory.append_log(line)
        self.progress.say(line)

    def _finish(self) -> None:
        self.log()
        checkpoints.save_final_model(self.directory.path, self.learner.model.state_dict())
        if self.config.evaluation.predictions:
            held_out = {split: self.splits[split] for split in ("val", "test")}
            self.directory.write_predictions(predict(self.learner.logits, held_out))

    # --- events ------------------------------------------------------------------------------

    def _is_due(self, iteration: int) -> bool:
        last = iteration == self.config.training.iterations
        return last or iteration % self.config.evaluation.every == 0

    def _measure(self) -> None:
        self.log()
        iteration = self.learner.iteration
        is_last = iteration == self.config.training.iterations
        begun = time.perf_counter()
        self.measures = self._measures_of(self.learner.model, is_last)
        if self.learner.average is not None and iteration > 0:
            averaged = self._measures_of(self.learner.average.ready(self._first_batches()), is_last)
            self.measures |= {f"{split}_averaged": m for split, m in averaged.items()}
        self.clock.add("measurement", time.perf_counter() - begun)
        seconds = f"{self.clock.seconds(*TRAINING_PARTS):.3f}"
        self.directory.append_metrics(
            (iteration, seconds, split, name, m.loss, m.accuracy, m.examples)
            for split, measures in self.measures.items()
            for name, m in measures.items()
        )
        if self.config.evaluation.metrics:
            self.directory.append_measures(
                (iteration, split, name, metric, value)
                for split, measures in self.measures.items()
                for name, m in measures.items()
                for metric, value in m.further.items()
            )
        for split, measures in self.measures.items():
            self._check_finite(split, measures)
        self._note_marginal_error()
        worst_now = self.worst("train")
        self.progress.measured(iteration, worst_now["loss"], worst_now["accuracy"])

    def _measures_of(self, model: nn.Module, whole: bool) -> dict[str, dict[str, Measure]]:
        """split -> domain -> measure; of the training set a fixed subset, unless `whole`."""
        return {
            split: measure(
                self.learner.in_precision(model),
                domains,
                None if whole or split != "train" else self.subset,
                between=self.stop.check,
                metrics=self.config.evaluation.metrics,
            )
            for split, domains in self.splits.items()
            if domains
        }

    def _check_finite(self, split: str, measures: Mapping[str, Measure]) -> None:
        for name, m in measures.items():
            if not math.isfinite(m.loss):
                raise Diverged(self.learner.iteration, name, split)

    def constant(self) -> dict[str, list[str]]:
        """split -> the domains for all of whose images the final model predicts one class."""
        if self.learner.measured < self.config.training.iterations:
            return {}
        found = {
            split: [name for name, m in measures.items() if m.constant]
            for split, measures in self.measures.items()
        }
        return {split: names for split, names in found.items() if names}

    def worst(self, split: str, *, unseen: bool = False) -> dict[str, float]:
        """Of the last measurement, over all domains but those of `data.unseen`, or over those.

        An individual model's worst is over the domains that it does not train on as well.
        """
        measures = self.measures[split].items()
        return worst({name: m for name, m in measures if (name in self.unseen) == unseen})

    def _first_batches(self) -> Iterator[torch.Tensor]:
        """Images of the run's first batches, for batch-norm statistics of an averaged model."""
        first = self.batches.draw_block(0)
        for iteration in range(BLOCK):
            yield self.pool.gather(first[iteration])[0]

    def log(self) -> None:
        """Read the device's history and append what falls on a log interval."""
        self.clock.settle()
        every, last = self.config.logging.every, self.config.training.iterations
        for row in self.history.read():
            if self.watched:
                self.watch.see(row)
            self.weight_sums = [s + p for s, p in zip(self.weight_sums, row.weights, strict=True)]
            self._latest_weights = dict(zip(self.trained, row.weights, strict=True))
            if row.iteration == 1 or row.iteration % every == 0 or row.iteration == last:
                self.directory.append_weights(
                    (row.iteration, name, p, loss)
                    for name, p, loss in zip(
                        self.trained, row.weights, row.batch_losses, strict=True
                    )
                )
        self.progress.iterated(self.learner.iteration, self._latest_weights)
        self._announce()

    def _announce(self) -> None:
        """Say every kind of warning once, when it first holds."""
        for kind, warning in self.warnings().items():
            if kind not in self._announced:
                self._announced.add(kind)
                self.directory.append_log(f"warning: {warning}")
                self.progress.say(f"warning: {warning}")

    def _full_losses(self) -> torch.Tensor:
        """f(W_t) over the trained domains' whole training sets; the method's own time.

        A measurement of this iteration that took all examples is not made twice.
        """
        made_now = self.measures and self.learner.measured == self.learner.iteration
        if made_now and not any(name in self.subset for name in self.trained):
            losses = [self.measures["train"][name].loss for name in self.trained]
            return torch.tensor(losses, device=self.device)
        begun = time.perf_counter()
        splits = {name: self.splits["train"][name] for name in self.trained}
        measures = measure(self.learner.logits, splits, between=self.stop.check)
        self.clock.add("adversary", time.perf_counter() - begun)
        self._check_finite("train", measures)
        return torch.tensor([m.loss for m in measures.values()], device=self.device)

    def _note_marginal_error(self) -> None:
        regularizer = getattr(self.learner.adversary, "regularizer", None)
        error = getattr(regularizer, "marginal_error", None)
        if error is not None:
            self.marginal_error = max(self.marginal_error, float(error))

    def warnings(self) -> dict[str, str]:
        """What a user should be told of the run so far, by kind."""
        found = dict(zip(self.data_warnings, self.data_warnings, strict=True))
        if self.watch.warning:
            found["weights"] = self.watch.warning
        if self.marginal_error > LARGEST_MARGINAL_ERROR:
            found["marginal error"] = (
                f"Sinkhorn's sweeps left a marginal error of up to {self.marginal_error:.1e}: "
                "more method.sweeps, or a smaller method.nu, make the direction exact"
            )
        if constant := one_class_words(self.constant()):
            found["constant"] = constant
        if skipped := int(self.learner.adversary.skipped):
            found["skipped"] = f"{skipped} updates of the weights skipped: a loss was not finite"
        return found

    # --- checkpoints -------------------------------------------------------------------------

    def save_checkpoint(self) -> None:
        """Write down all that the run needs to go on as if nothing had happened."""
        self.log()
        extents = {
            name: (found.length, found.digest) for name, found in self.directory.extents().items()
        }
        state = {**self.state(), "extents": extents}
        checkpoints.save(self.directory.path, self.learner.iteration, state)
        self._saved_at = time.monotonic()

    def _checkpoint_is_due(self, iteration: int) -> bool:
        every, seconds = self.config.checkpoint.every, self.config.checkpoint.seconds
        if seconds is not None and time.monotonic() - self._saved_at >= seconds:
            return True
        return iteration % every == 0

    @property
    def belongs_to(self) -> str:
        """Which run on which bytes: a checkpoint of another one is not taken."""
        weights = self.learner.weights_file
        read = {
            "data_fingerprint": self.domains.fingerprint,
            "weights_sha256": weights.sha256 if weights else None,
        }
        return self._named(read)

    @property
    def belonged_to(self) -> str:
        """The same as checkpoints have it that are older than names without paths."""
        return self._named({})

    def _named(self, read: Mapping[str, Any]) -> str:
        identity = config_hash(settings.identity_of(settings.as_dict(self.config), read))
        began = self.learner.weights_file.sha256 if self.learner.weights_file else ""
        return f"{identity} seed={self.config.seed} {self.domains.fingerprint} {began}"

    def state(self) -> dict[str, Any]:
        """All that changes while it runs, but for the rows already written."""
        return {
            "belongs_to": self.belongs_to,
            "learner": self.learner.state_dict(),
            "watch": self.watch.state_dict(),
            "clock": self.clock.state_dict(),
            "marginal_error": self.marginal_error,
            "weight_sums": list(self.weight_sums),
            "random": generator_states(self.device),
            "resumed": list(self.resumed),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave. Raises whatever fits the fault where it does not fit."""
        self.learner.load_state_dict(state["learner"])
        self.watch.load_state_dict(state["watch"])
        self.clock.load_state_dict(state["clock"])
        self.marginal_error = state["marginal_error"]
        self.weight_sums = list(state["weight_sums"])
        self.resumed = list(state["resumed"])
        set_generator_states(state["random"], self.device)


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
