"""One run while it is under way: trains by its plan, measures, and writes down what comes of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import nn

from robustmd.backbones import head_of
from robustmd.backbones.library import Library
from robustmd.registry import AUGMENTATIONS, LOSSES, BackboneFacts
from robustmd.runs import checkpoints, files
from robustmd.runs.reader import validated_so_far
from robustmd.runs.run import one_class_words
from robustmd.training.batches import BLOCK, BatchStream, stream
from robustmd.training.console import Interrupted, RunProgress, StopRequest
from robustmd.training.fast_iteration import ready_iteration
from robustmd.training.features import features_of
from robustmd.training.history import TRAINING_PARTS, Diverged, History
from robustmd.training.learner import build_learner
from robustmd.training.loop import Parts, train
from robustmd.training.measurement import Measure, check_outputs, measure, predict, worst
from robustmd.training.plan import Plan
from robustmd.training.pool import TrainingPool, resident_splits, where_images_are
from robustmd.training.ranks import here
from robustmd.training.resume import by_length
from robustmd.training.state import RunState


class Pruned(Exception):
    """The run is a trial of a search and is worse than others."""


class Session:
    """What changes is its state, what stays is the plan, the rest are effects.

    Args:
        plan: what to train on what.
        stop: knows of the signals that have come.
        limits: iteration -> the least worst-case validation loss that the run has to have had by
            then, or it ends as pruned.
    """

    def __init__(
        self, plan: Plan, stop: StopRequest, limits: Mapping[int, float] | None = None
    ) -> None:
        self.plan, self.stop, self.limits, self.ranks = plan, stop, limits or {}, here()
        config, device = plan.config, plan.device
        self.splits = resident_splits(plan.domains, device, config.seed)
        batches = BatchStream(
            {name: plan.domains[name].train for name in plan.trained},
            config.training.batch_size,
            config.seed,
            plan.domains_per_batch,
            plan.shares,
            AUGMENTATIONS.get(config.data.augment),
            (self.ranks.index, self.ranks.size),
        )
        trained = [self.splits["train"][name] for name in plan.trained]
        facts = plan.domains, len(trained), device, plan.sizes
        learner = build_learner(config, *facts, plan.weights)
        if not isinstance(config.backbone, Library):  # a library's has been tried when it was built
            check_outputs(learner.logits, trained[0], len(plan.domains.classes))
        self.ranks.connect_batch_norm(learner.model)
        history = History(plan.trained, min(config.logging.every, plan.iterations), device)
        self.learner, self.state = learner, RunState(plan, learner)
        self.clock = self.state.clock
        pool = TrainingPool(trained, batches.counts, batches.augmentation)
        self.parts = Parts(learner, batches, pool, history, self.clock)
        self.measured_loss = LOSSES[config.training.loss]
        self.initial_weights_hash = learner.weights_hash()
        self.subset = self._measured_positions()
        self.measures: dict[str, dict[str, Measure]] = {}  # the last measurement, by split
        self.end = plan.iterations  # the last iteration; earlier where training.patience ends it
        self.keeps_end = config.checkpoint.end and not by_length(plan)
        self.data_warnings: list[str] = []  # of the data, for the summary
        self._announced: set[str] = set()
        self._saved_at = time.monotonic()
        self._latest_weights = tuple(learner.adversary.weights.tolist())

    def run(self, progress: RunProgress) -> None:
        """Train to the last iteration, measuring, logging and saving on the way.

        Raises Interrupted and Pruned, after a checkpoint is saved; Diverged.
        """
        self.progress = progress
        try:
            self._compare_with_limit()
            self.parts.history.start_at(self.learner.iteration + 1)
            if (placed := where_images_are(self.splits)) is not None:
                self._note(placed)
            if self.plan.config.backbone.freeze == "features":
                self._keep_features()
            train(self, ready_iteration(self.plan.config.runtime, self.parts, self._note))
            self._finish()
        except (Interrupted, Pruned):
            self.save_checkpoint()
            raise

    def _keep_features(self) -> None:
        """Compute frozen features once where nothing random comes before them, or say why not."""
        begun, plan, parts = time.perf_counter(), self.plan, self.parts
        head = head_of(plan.config.backbone, BackboneFacts.of(plan.domains))
        kept = features_of(self.splits, parts.batches, self.learner, head, self.stop.check)
        if isinstance(kept, str):
            self._note(f"frozen features are computed anew for each batch: {kept}")
            return
        self.splits = kept
        self.learner.enter_at(head)
        trained = [kept["train"][name] for name in plan.trained]
        self.parts = replace(parts, pool=TrainingPool(trained, parts.batches.counts))
        seconds = time.perf_counter() - begun
        self.clock.add("start", seconds)
        count = sum(len(split) for domains in kept.values() for split in domains.values())
        self._note(f"frozen features of {count:,} examples computed once, in {seconds:.1f} s")

    def _finish(self) -> None:
        self.log()
        if self.early:
            self._note(self.early)
        if not self.ranks.is_first:
            return
        path, best = self.plan.directory.path, self.state.best
        checkpoints.write(path / files.FINAL_MODEL, self.learner.model.state_dict())
        if best.keeps:
            checkpoints.write(path / files.BEST_MODEL, best.model)
        if self.plan.config.evaluation.predictions:
            held_out = {split: self.splits[split] for split in ("val", "test")}
            self.plan.directory.write_predictions(predict(self.learner.logits, held_out))

    def after_iteration(self) -> None:
        """Read the history where it is full; save a checkpoint where one is due, after the last
        iteration that which extend=true goes on from."""
        if self.parts.history.full or self._is_last:
            self.log()
        wanted = self.plan.config.checkpoint
        waited = time.monotonic() - self._saved_at
        by_clock = wanted.seconds is not None and waited >= wanted.seconds
        is_due = by_clock or self.learner.iteration % wanted.every == 0
        if self.keeps_end if self._is_last else is_due:
            self.save_checkpoint()

    @property
    def _is_last(self) -> bool:
        return self.learner.iteration == self.end

    @property
    def early(self) -> str:
        """Why it ended before T; "" where it did not."""
        if self.end == self.plan.iterations:
            return ""
        best = self.state.best
        return (
            f"stopped early after iteration {self.end} of {self.plan.iterations}: no better "
            f"{best.by} on validation in {best.since} measurements, since iteration "
            f"{best.iteration} (training.patience)"
        )

    # --- measuring ---------------------------------------------------------------------------

    def _measured_positions(self) -> dict[str, torch.Tensor]:
        """A fixed random subset of each training set larger than `evaluation.examples`."""
        limit, seed = self.plan.config.evaluation.examples, self.plan.config.seed
        return {
            name: torch.from_numpy(
                stream(seed, f"measurement/{name}").permutation(len(split))[:limit].copy()
            ).sort()[0]
            for name, split in self.splits["train"].items()
            if len(split) > limit
        }

    def measure_if_due(self) -> None:
        """Measure every so many iterations and after the last, but not twice where a run goes on
        from a checkpoint."""
        iteration = self.learner.iteration
        is_due = self._is_last or iteration % self.plan.config.evaluation.every == 0
        if is_due and self.learner.measured < iteration:
            self._measure()
            self.learner.measured = iteration
            self._compare_with_limit()

    def _compare_with_limit(self) -> None:
        """Raises Pruned."""
        at = self.learner.measured
        if at not in self.limits or at == self.end:
            return
        compared = [name for name in self.plan.domains.names if name not in self.plan.unseen]
        best = validated_so_far(self.plan.directory.path, compared)[at]
        if best > self.limits[at]:
            raise Pruned(
                f"its worst-case validation loss fell to {best:.4f}, half of the search's finished "
                f"runs had {self.limits[at]:.4f} or less by then"
            )

    def full_losses(self) -> torch.Tensor:
        """f(W_t) over the trained domains' whole training sets; the method's own time.

        A measurement of this iteration that took all examples, by the loss that is trained on, is
        not made twice.
        """
        trained, loss = self.plan.trained, self.learner.loss
        made_now = self.measures and self.learner.measured == self.learner.iteration
        made_now = made_now and loss is self.measured_loss.of
        if made_now and self.subset.keys().isdisjoint(trained):
            measures = self.measures["train"]
        else:
            begun = time.perf_counter()
            splits = {name: self.splits["train"][name] for name in trained}
            measures = measure(self.learner.logits, splits, between=self.stop.check, loss=loss)
            self.clock.add("adversary", time.perf_counter() - begun)
            self._check_finite("train", measures)
        return torch.tensor([measures[name].loss for name in trained], device=self.plan.device)

    def _measure(self) -> None:
        self.log()
        iteration, best, begun = self.learner.iteration, self.state.best, time.perf_counter()
        there = [split for split, domains in self.splits.items() if domains]
        made: dict[str, dict[str, Measure]] = {}
        validated: dict[str, Measure] = {}
        if best.is_watched:  # first: the last measurement takes all training examples
            made["val"] = self._measured("val", self.learner.model)
            validated = {name: m for name, m in made["val"].items() if name not in self.plan.unseen}
            if best.ends_with(iteration, validated):
                self.end = iteration
        self.measures = {
            split: made.get(split) or self._measured(split, self.learner.model) for split in there
        }
        if self.learner.average is not None and iteration > 0:
            average = self.learner.average.ready(self._first_batches())
            for split in there:
                self.measures[f"{split}_averaged"] = self._measured(split, average)
        self.clock.add("measurement", time.perf_counter() - begun)
        self._write_measures()
        for split, measures in self.measures.items():
            self._check_finite(split, measures)
        if best.is_watched:
            best.see(iteration, validated, self.learner.model)
        self.state.note_marginal_error()
        worst_now = self.worst("train")
        self.progress.measured(iteration, worst_now["loss"], worst_now.get("accuracy"))

    def _measured(self, split: str, model: nn.Module) -> dict[str, Measure]:
        """Of the training set a fixed subset, but all at the end."""
        return measure(
            self.learner.in_precision(model),
            self.splits[split],
            None if self._is_last or split != "train" else self.subset,
            between=self.stop.check,
            metrics=self.plan.config.evaluation.metrics,
            loss=self.measured_loss.of,
        )

    def _write_measures(self) -> None:
        iteration, seconds = self.learner.iteration, f"{self.clock.seconds(*TRAINING_PARTS):.3f}"
        rows, further = [], []
        for split, measures in self.measures.items():
            for name, m in measures.items():
                rows.append((iteration, seconds, split, name, m.loss, m.accuracy, m.examples))
                further += [(iteration, split, name, *one) for one in m.further.items()]
        self.plan.directory.append(files.METRICS, rows)
        if self.plan.config.evaluation.metrics:
            self.plan.directory.append(files.MEASURES, further)

    def _check_finite(self, split: str, measures: Mapping[str, Measure]) -> None:
        for name, m in measures.items():
            if not math.isfinite(m.loss):
                raise Diverged(self.learner.iteration, name, split)

    def worst(self, split: str, *, unseen: bool = False) -> dict[str, float]:
        """Of the last measurement, over all domains but those of `data.unseen`, or over those.

        An individual model's worst is over the domains that it does not train on as well.
        """
        measures = self.measures[split].items()
        return worst({name: m for name, m in measures if (name in self.plan.unseen) == unseen})

    def _first_batches(self) -> Iterator[torch.Tensor]:
        """Images of the run's first batches, for batch-norm statistics of an averaged model."""
        first = self.parts.batches.draw_block(0)
        for iteration in range(BLOCK):
            yield self.parts.pool.gather(first.at(iteration))[0]

    # --- writing down ------------------------------------------------------------------------

    def log(self) -> None:
        """Read the device's history and append what falls on a log interval."""
        self.clock.settle()
        rows, every = self.parts.history.read(), self.plan.config.logging.every
        self.state.count(rows)
        for row in rows:
            if row.iteration in (1, self.end) or row.iteration % every == 0:
                of_domains = zip(self.plan.trained, row.weights, row.batch_losses, strict=True)
                lines = [(row.iteration, *one) for one in of_domains]
                self.plan.directory.append(files.WEIGHTS, lines)
            self._latest_weights = row.weights
        weights = dict(zip(self.plan.trained, self._latest_weights, strict=True))
        self.progress.iterated(self.learner.iteration, weights)
        for kind, warning in self.warnings().items():  # each kind once, when it first holds
            if kind not in self._announced:
                self._announced.add(kind)
                self._note(f"warning: {warning}")

    def _note(self, line: str) -> None:
        self.plan.directory.append_log(line)
        self.progress.say(line)

    def warnings(self) -> dict[str, str]:
        """What a user should be told of the run so far, by kind."""
        found = {line: line for line in self.data_warnings} | self.state.warnings()
        if self.learner.measured == self.end:
            constant = {
                split: [name for name, m in measures.items() if m.constant]
                for split, measures in self.measures.items()
            }
            if words := one_class_words(constant):
                found["constant"] = words
        return found

    def save_checkpoint(self) -> None:
        """Write down all that the run needs to go on as if nothing had happened."""
        self.log()
        if not self.ranks.is_first:
            return
        extents = {
            name: (found.length, found.digest)
            for name, found in self.plan.directory.extents().items()
        }
        state = {**self.state.state_dict(), "extents": extents}
        checkpoints.save(self.plan.directory.path, self.learner.iteration, state)
        self._saved_at = time.monotonic()
