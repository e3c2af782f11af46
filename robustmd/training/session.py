"""One run while it is under way: trains by its plan, measures, and writes down what comes of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping

import torch
from torch import nn

from robustmd.runs import checkpoints, files
from robustmd.runs.run import one_class_words
from robustmd.training.batches import BLOCK, BatchStream
from robustmd.training.fast_iteration import ready_iteration
from robustmd.training.history import Diverged, History
from robustmd.training.images import ResidentExamples, resident_splits, where_images_are
from robustmd.training.learner import build_learner
from robustmd.training.loop import train
from robustmd.training.measurement import Measure, measure, predict, worst
from robustmd.training.plan import Plan
from robustmd.training.pool import TrainingPool
from robustmd.training.progress import RunProgress
from robustmd.training.seeds import stream
from robustmd.training.signals import StopRequest
from robustmd.training.state import RunState

TRAINING_PARTS = ("data", "model", "adversary")  # what "training time" is made of


class Session:
    """A `loop.Run`: what changes is its state, what stays is the plan, the rest are effects.

    Args:
        plan: what to train on what.
        stop: knows of the signals that have come.
    """

    def __init__(self, plan: Plan, stop: StopRequest) -> None:
        self.plan, self.stop = plan, stop
        config, device = plan.config, plan.device
        self.splits = resident_splits(plan.domains, device, config.seed)
        self.batches = BatchStream.of(
            {name: plan.domains[name].train for name in plan.trained},
            config.training.batch_size,
            config.seed,
            plan.domains_per_batch,
        )
        trained = [self.splits["train"][name] for name in plan.trained]
        self.pool = TrainingPool(trained)
        sizes = [len(split) for split in trained]
        self.learner = build_learner(
            config, plan.domains, len(trained), device, sizes, plan.weights
        )
        self.initial_weights_hash = self.learner.weights_hash()
        self.state = RunState(plan, self.learner)
        self.clock = self.state.clock
        capacity = min(config.logging.every, plan.iterations)
        self.history = History(plan.trained, capacity, device)
        self.subset = _measured_positions(plan, self.splits["train"])
        self.measures: dict[str, dict[str, Measure]] = {}  # the last measurement, by split
        self.data_warnings: list[str] = []  # of the data, for the summary
        self._announced: set[str] = set()
        self._saved_at = time.monotonic()
        first = self.learner.adversary.weights.tolist()
        self._latest_weights = dict(zip(plan.trained, first, strict=True))

    # --- the run -----------------------------------------------------------------------------

    def run(self, progress: RunProgress) -> None:
        """Train to the last iteration, measuring, logging and saving on the way."""
        self.progress = progress
        self.history.start_at(self.learner.iteration + 1)
        if (placed := where_images_are(self.splits)) is not None:
            self._note(placed)
        runtime, parts = self.plan.config.runtime, (self.learner, self.batches, self.pool)
        train(self, ready_iteration(runtime, *parts, self.clock, self._note))
        self._finish()

    def _note(self, line: str) -> None:
        self.plan.directory.append_log(line)
        self.progress.say(line)

    def _finish(self) -> None:
        self.log()
        checkpoints.save_final_model(self.plan.directory.path, self.learner.model.state_dict())
        if self.plan.config.evaluation.predictions:
            held_out = {split: self.splits[split] for split in ("val", "test")}
            self.plan.directory.write_predictions(predict(self.learner.logits, held_out))

    # --- what the loop asks for --------------------------------------------------------------

    @property
    def iterations(self) -> int:
        """T."""
        return self.plan.iterations

    def check_stop(self) -> None:
        """Raises `Interrupted` where the run was asked to stop."""
        self.stop.check()

    def measure_if_due(self) -> None:
        """Measure every so many iterations and after the last, but not twice where a run goes on
        from a checkpoint."""
        iteration = self.learner.iteration
        is_due = self._is_last or iteration % self.plan.config.evaluation.every == 0
        if is_due and self.learner.measured < iteration:
            self._measure()
            self.learner.measured = iteration

    def full_losses(self) -> torch.Tensor:
        """f(W_t) over the trained domains' whole training sets; the method's own time.

        A measurement of this iteration that took all examples is not made twice.
        """
        made_now = self.measures and self.learner.measured == self.learner.iteration
        if made_now and not any(name in self.subset for name in self.plan.trained):
            losses = [self.measures["train"][name].loss for name in self.plan.trained]
            return torch.tensor(losses, device=self.plan.device)
        begun = time.perf_counter()
        splits = {name: self.splits["train"][name] for name in self.plan.trained}
        measures = measure(self.learner.logits, splits, between=self.stop.check)
        self.clock.add("adversary", time.perf_counter() - begun)
        self._check_finite("train", measures)
        return torch.tensor([m.loss for m in measures.values()], device=self.plan.device)

    def after_iteration(self) -> None:
        """Read the history where it is full; save a checkpoint where one is due, but none after the
        last iteration."""
        if self.history.full or self._is_last:
            self.log()
        if not self._is_last and self._checkpoint_is_due():
            self.save_checkpoint()

    @property
    def _is_last(self) -> bool:
        return self.learner.iteration == self.iterations

    def _checkpoint_is_due(self) -> bool:
        every, seconds = self.plan.config.checkpoint.every, self.plan.config.checkpoint.seconds
        if seconds is not None and time.monotonic() - self._saved_at >= seconds:
            return True
        return self.learner.iteration % every == 0

    # --- measuring ---------------------------------------------------------------------------

    def _measure(self) -> None:
        self.log()
        iteration = self.learner.iteration
        begun = time.perf_counter()
        self.measures = self._measures_of(self.learner.model)
        if self.learner.average is not None and iteration > 0:
            averaged = self._measures_of(self.learner.average.ready(self._first_batches()))
            self.measures |= {f"{split}_averaged": m for split, m in averaged.items()}
        self.clock.add("measurement", time.perf_counter() - begun)
        seconds = f"{self.clock.seconds(*TRAINING_PARTS):.3f}"
        self.plan.directory.append(
            files.METRICS,
            (
                (iteration, seconds, split, name, m.loss, m.accuracy, m.examples)
                for split, measures in self.measures.items()
                for name, m in measures.items()
            ),
        )
        if self.plan.config.evaluation.metrics:
            self.plan.directory.append(
                files.MEASURES,
                (
                    (iteration, split, name, metric, value)
                    for split, measures in self.measures.items()
                    for name, m in measures.items()
                    for metric, value in m.further.items()
                ),
            )
        for split, measures in self.measures.items():
            self._check_finite(split, measures)
        self.state.note_marginal_error()
        worst_now = self.worst("train")
        self.progress.measured(iteration, worst_now["loss"], worst_now["accuracy"])

    def _measures_of(self, model: nn.Module) -> dict[str, dict[str, Measure]]:
        """split -> domain -> measure; of the training set a fixed subset, but all at the end."""
        return {
            split: measure(
                self.learner.in_precision(model),
                domains,
                None if self._is_last or split != "train" else self.subset,
                between=self.stop.check,
                metrics=self.plan.config.evaluation.metrics,
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
        if self.learner.measured < self.iterations:
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
        return worst({name: m for name, m in measures if (name in self.plan.unseen) == unseen})

    def _first_batches(self) -> Iterator[torch.Tensor]:
        """Images of the run's first batches, for batch-norm statistics of an averaged model."""
        first = self.batches.draw_block(0)
        for iteration in range(BLOCK):
            yield self.pool.gather(first[iteration])[0]

    # --- writing down ------------------------------------------------------------------------

    def log(self) -> None:
        """Read the device's history and append what falls on a log interval."""
        self.clock.settle()
        rows, every = self.history.read(), self.plan.config.logging.every
        self.state.count(rows)
        for row in rows:
            if row.iteration in (1, self.iterations) or row.iteration % every == 0:
                losses = zip(self.plan.trained, row.weights, row.batch_losses, strict=True)
                self.plan.directory.append(
                    files.WEIGHTS, ((row.iteration, *of_domain) for of_domain in losses)
                )
        if rows:
            self._latest_weights = dict(zip(self.plan.trained, rows[-1].weights, strict=True))
        self.progress.iterated(self.learner.iteration, self._latest_weights)
        self._announce()

    def _announce(self) -> None:
        """Say every kind of warning once, when it first holds."""
        for kind, warning in self.warnings().items():
            if kind not in self._announced:
                self._announced.add(kind)
                self.plan.directory.append_log(f"warning: {warning}")
                self.progress.say(f"warning: {warning}")

    def warnings(self) -> dict[str, str]:
        """What a user should be told of the run so far, by kind."""
        found = dict(zip(self.data_warnings, self.data_warnings, strict=True))
        found |= self.state.warnings()
        if constant := one_class_words(self.constant()):
            found["constant"] = constant
        return found

    def save_checkpoint(self) -> None:
        """Write down all that the run needs to go on as if nothing had happened."""
        self.log()
        extents = {
            name: (found.length, found.digest)
            for name, found in self.plan.directory.extents().items()
        }
        state = {**self.state.state_dict(), "extents": extents}
        checkpoints.save(self.plan.directory.path, self.learner.iteration, state)
        self._saved_at = time.monotonic()


def _measured_positions(
    plan: Plan, splits: Mapping[str, ResidentExamples]
) -> dict[str, torch.Tensor]:
    """A fixed random subset of each training set that is larger than `evaluation.examples`."""
    limit, seed = plan.config.evaluation.examples, plan.config.seed
    return {
        name: torch.from_numpy(
            stream(seed, f"measurement/{name}").permutation(len(split))[:limit].copy()
        ).sort()[0]
        for name, split in splits.items()
        if len(split) > limit
    }
