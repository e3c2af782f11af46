"""One run from its settings to its summary: whatever happens, its status says so."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from robustmd.backbones import head_of
from robustmd.config import settings
from robustmd.config.plugins import described
from robustmd.config.resolve import with_shorter_warmup
from robustmd.errors import UserError, first_line, listed
from robustmd.metrics import BestBy
from robustmd.registry import AUGMENTATIONS, LOSSES, METRICS, BackboneFacts
from robustmd.runs import checkpoints, files
from robustmd.runs.untrusted import Unreadable
from robustmd.trackers import Trackers, check_trackers
from robustmd.training.data import (
    BLOCK,
    LARGEST_SHARE,
    Batch,
    Batches,
    Images,
    Part,
    masked,
    torch_seed,
)
from robustmd.training.environment import describe, memory_for
from robustmd.training.features import features_of
from robustmd.training.graph import captured_step, compiled
from robustmd.training.history import PARTS, Clock, Diverged, WeightsWatch, rows_of
from robustmd.training.learner import Learner, Loss
from robustmd.training.measure import Measures, measure, predictions, worst
from robustmd.training.plan import Plan, changed_code, is_finished, make_plan
from robustmd.training.progress import Interrupted, RunProgress, StopRequest
from robustmd.training.summary import batch_notes, summary_of, verdict, warnings_of
from robustmd.training.trial import try_parts

GOES_ON = "the same command goes on"
# environment.json's keys that have to be the same for the same bytes
SAME = ("packages", "cpu", "device", "threads", "processes", "robustmd", "git_commit")
# What changes beside learner, optimizer, clock and generators; plain values
KEPT = (
    *("iteration", "measured", "weight_sums", "marginal_error"),
    *("best", "resumed", "warned"),
)
OnMeasure = Callable[[int, Mapping[str, Measures]], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, `kept` (it was there already), `interrupted`, `diverged`.

    `stop_code`: 128 + the signal that came, 0 where none did; a sweep ends.
    """

    status: str
    directory: Path
    message: str
    exit_code: int
    stop_code: int = 0


def run(
    config: settings.Config,
    console: Console,
    overrides: Sequence[str] = (),
    announce: Callable[[Path], None] = lambda _: None,
    on_measure: OnMeasure | None = None,
) -> Outcome:
    """Train one model as `config` says, or find that it has been trained.

    Args:
        overrides: what the user typed, key=value, for environment.json.
        announce: is told the run's directory once it is known.
        on_measure: is told the iteration and {split: {domain: measures}} after each measurement.

    Raises:
        UserError: the settings, the data or the output folder do not allow it.
    """
    begun = time.perf_counter()

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    config, note = with_shorter_warmup(config, overrides)
    check_trackers(config.tracking)
    with StopRequest() as stop:
        try:
            with stop.at_once():
                plan = make_plan(config, overrides, say)
                plan = replace(plan, notes=tuple(filter(None, (note, *plan.notes))))
        except Interrupted as stopped:
            words = f"{stopped} before training; {GOES_ON}"
            return Outcome("interrupted", Path(config.paths.outputs), words, stopped.code)
        path, processes = plan.directory.path, plan.processes
        announce(path)
        try:
            with plan.directory.locked():
                if processes.first_says(processes.is_first and is_finished(plan)):
                    changed = changed_code(plan)
                    words = "finished before; not trained again (force=true would)"
                    words += f"; since then {listed(changed)} changed" if changed else ""
                    return Outcome("kept", path, words, 0, stop.code)
                with memory_for(
                    "the images and the model; choose a smaller backbone or fewer images"
                ):
                    under_way = Run(plan, stop, console)
                with memory_for(under_way.batch):
                    try_parts(under_way)
                outcome = under_way.run(overrides, begun, on_measure)
                return replace(outcome, stop_code=stop.code)
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: {error.strerror or error}; "
                "free or open that place, or choose another with paths.outputs=FOLDER"
            ) from None


class Run:
    """A run under way. What changes is in `state_dict`: with the rows written so far, that is all
    that it needs to go on as if nothing had happened."""

    def __init__(self, plan: Plan, stop: StopRequest, console: Console) -> None:
        config, device = plan.config, plan.device
        self.plan, self.stop, self.console = plan, stop, console
        self.training, self.evaluation = config.training, config.evaluation
        self.images = Images(plan.domains, device, config.seed)
        self.batches = self._batches(self.images)
        facts = BackboneFacts.of(plan.domains)
        self.learner = Learner(config, facts, plan.sizes, device, plan.weights)
        self.measured_loss = LOSSES[config.training.loss]
        size = self.training.batch_size
        self.batch = f"training.batch_size={size}; try {max(1, size // 2)}"
        numbers = [plan.domains.names.index(name) for name in plan.trained]
        absent = self.images.absent
        self.absent = None if absent is None else absent[torch.tensor(numbers, device=device)]
        self.head = head_of(config.backbone, facts) if config.backbone.freeze == "features" else ""
        self.subset = self.images.some_of_each(self.evaluation.examples, config.seed)

        capacity = min(config.logging.every, self.training.iterations)
        self.log = torch.zeros(capacity, 2, len(plan.trained), device=device)  # p_t and f̂ᵗ
        self.log_row = torch.zeros(1, dtype=torch.int64, device=device)
        self.clock = Clock(device)
        self.watch = WeightsWatch(self.learner.adversary, plan.trained, self.training.iterations)
        self.iteration, self.logged, self.measured = 0, 0, -1
        self.end = self.training.iterations  # earlier where training.patience ends it
        self.weight_sums = [0.0] * len(plan.trained)  # Σ_t p_t over the logged iterations
        self.marginal_error = 0.0  # the largest that Sinkhorn's sweeps left, for OT
        self.by = BestBy.of(self.evaluation.best_by)
        self.best: dict[str, Any] = {"iteration": 0, "value": None, "since": 0, "model": {}}
        self.resumed: list[str] = []  # a note for every time that it was taken up again
        self.warned: dict[str, str] = {}  # warnings by kind that stay
        self.measures: dict[str, Measures] = {}  # the last measurement, by split
        self.notes: list[str] = []
        self.progress = RunProgress(console, self.training.iterations)
        self.stopped_by_user = False  # by what on_measure raised
        self._announced: set[str] = set()
        self._saved_at = time.monotonic()

    def _batches(self, images: Images) -> Batches:
        config, processes = self.plan.config, self.plan.processes
        return Batches(
            images,
            self.plan.trained,
            self.plan.drawn,
            config.training.batch_size,
            config.seed,
            AUGMENTATIONS.get(config.data.augment),
            (processes.index, processes.size),
        )

    # --- an iteration -----------------------------------------------------------------------------

    def iterate(self, step: Callable[[], None]) -> None:
        """Iteration t: what the host does before it, then `step`, or its replay."""
        self.batches.go_to(self.iteration)
        self.learner.begin(self.iteration)
        if self.plan.processes.size > 1:  # so that a run that goes on draws the same (dropout)
            rank = f"rank {self.plan.processes.index}"
            torch.manual_seed(torch_seed(self.plan.config.seed, rank) + self.iteration)
        step()
        self.iteration += 1

    def step(self) -> None:
        """W_{t+1} from p_t and f̂ᵗ, p_{t+1} from f̂ᵗ. p is never differentiated through. Nothing in
        here makes the host wait for the device, and a CUDA graph can hold it."""
        learner, rule, mark = self.learner, self.learner.adversary, self.clock.mark
        marks = [("", mark())]
        batch = self.batches.gather()
        marks.append(("data", mark()))
        own, share = self.losses(batch)
        losses, present = self.of_all(own, share, batch.domains)
        marks.append(("model", mark()))
        # Weights that depend on which domains were drawn would make the step on them a biased one.
        weighs = "next" if batch.domains is not None else rule.weighs
        if weighs == "current" and rule.feeds_on == "batch":
            learner.answer(losses, present)
            marks.append(("adversary", mark()))
        weights = rule.weights.clone()
        played = weights
        if batch.domains is not None:  # each is drawn with probability M/K: the mean is p·f̂
            played = weights[batch.domains] * (len(weights) / len(batch.domains))
        learner.descend(played @ (own if share is None else own * share))
        seen = losses.nan_to_num(torch.inf, torch.inf, torch.inf)  # NaN means: not drawn
        if present is not None:
            seen = seen.where(present, torch.nan)
        self.log.index_copy_(0, self.log_row, torch.stack([weights, seen])[None])
        self.log_row += 1
        marks.append(("model", mark()))
        if weighs == "next" and rule.feeds_on == "batch":
            learner.answer(losses, present)
        if rule.looks_back:
            with torch.no_grad():
                rule.look_back(*self.of_all(*self.losses(batch), batch.domains))
        marks.append(("adversary", mark()))
        self.clock.marks.append(marks)

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """(mean loss of each drawn domain's examples here [M], what it counts in the mean over all
        processes, times their number [M]; None: this process has them all)."""
        logits = self.learner.computed(self.step_model, batch.images)
        if self.absent is not None:
            logits = masked(logits, self.absent.index_select(0, batch.whose))
        losses = self.learner.loss(logits, batch.labels)
        size = self.plan.processes.size
        if size == 1:
            return losses.view(self.plan.drawn, -1).mean(1), None
        place = batch.whose
        if batch.domains is not None:
            place = torch.searchsorted(batch.domains, place)
        counts = torch.bincount(place, minlength=self.plan.drawn)
        sums = losses.new_zeros(self.plan.drawn).index_add(0, place, losses)
        return sums / counts.clamp(min=1), counts * (size / self.batches.share)

    def of_all(
        self, own: Tensor, share: Tensor | None, drawn: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """(f̂ᵗ [K] over all processes, present: bool [K]; None: all domains are)."""
        losses = own.detach()
        if share is not None:
            losses = self.plan.processes.sum(losses * share) / self.plan.processes.size
        if drawn is None:
            return losses, None
        blank = torch.zeros_like(self.learner.adversary.weights)
        present = torch.zeros_like(blank, dtype=torch.bool).index_fill(0, drawn, True)
        return blank.index_copy(0, drawn, losses), present

    def full_losses(self) -> Tensor:
        """f(W_t) [K] over the trained domains' whole training sets; the method's own time.

        A measurement of this iteration that took all examples, by the loss that is trained on, is
        not made twice.
        """
        trained, loss = self.plan.trained, self.learner.loss
        made_now = self.measures and self.measured == self.iteration
        made_now = made_now and loss is self.measured_loss.of
        if made_now and self.subset.keys().isdisjoint(trained):
            measures = self.measures["train"]
        else:
            begun = time.perf_counter()
            parts = {name: self.images.parts["train"][name] for name in trained}
            measures = self._measure(parts, None, loss)
            self.clock.seconds["adversary"] += time.perf_counter() - begun
            self.check_finite("train", measures)
        return torch.tensor([measures[name]["loss"] for name in trained], device=self.plan.device)

    # --- the run ----------------------------------------------------------------------------------

    def run(self, overrides: Sequence[str], begun: float, on_measure: OnMeasure | None) -> Outcome:
        """Begin or go on, train to the end, and leave a summary. begun: on `time.perf_counter`."""
        self.begun, self.preparation = begun, 0.0
        try:
            self.begin(overrides)
            self.preparation = time.perf_counter() - begun
            names, model = self.plan.config.tracking, self.plan.config.tracking_model
            with Trackers(self.plan.directory, names, self.note, model) as self.trackers:
                self.conclude("running")
                outcome, why = self.trained(on_measure)
                self.conclude(outcome.status, why)
        except KeyboardInterrupt:  # a second Ctrl-C
            self.conclude("interrupted", f"stopped at once; {GOES_ON} from the last checkpoint")
            raise
        except BaseException as error:
            if self.stopped_by_user:
                self.conclude("interrupted", f"stopped by on_measure: {first_line(error)}")
                raise
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            with contextlib.suppress(OSError):  # a full disk takes no summary either
                self.conclude("failed", f"{kind}{error}")
            raise
        if outcome.status == "finished" and self.plan.processes.is_first:
            checkpoints.drop(outcome.directory)
        return outcome

    def begin(self, overrides: Sequence[str]) -> None:
        """Start the directory, or go on from its newest checkpoint that can be used."""
        plan, config, processes = self.plan, self.plan.config, self.plan.processes
        named = [text.partition("=")[2] for text in overrides if text.startswith("experiment=")]
        environment = {
            "overrides": list(overrides),
            "folder": str(Path.cwd()),
            **describe(plan.device),
            **({"processes": processes.size} if processes.size > 1 else {}),
            "experiment": named[0] if named else None,
            "plugins": described(config),
            **plan.read,
        }
        notes = [*self.learner.notes, *plan.notes]
        goes_on = processes.is_first and config.resume and not config.force
        if not (goes_on and self.take_up(environment)):
            first = {"status": "running", "data": config.data.name, "seed": config.seed}
            plan.directory.begin(plan.plain, environment, first)
        told = processes.first_says(self.state_dict() if processes.size > 1 else None)
        if not processes.is_first:
            self.load_state_dict(told)
        batch = batch_notes(plan, self.batches)
        self.notes = [*plan.domains.notes, *notes, *batch, *self.resumed]
        for line in self.notes:
            plan.directory.append_log(line)
        for line in [*notes, *(f"  {line}" for line in self.resumed)]:
            self.console.print(line, highlight=False, soft_wrap=True)

    def take_up(self, environment: Mapping[str, Any]) -> bool:
        """Whether the run goes on; rows that were written after the checkpoint are cut off.
        environment: what it runs on now; what it goes on on is noted."""
        directory, damage = self.plan.directory, list[str]()
        for iteration, state in checkpoints.newest_first(directory.path, damage.append):
            before = deepcopy(self.state_dict())
            try:
                self.load_state_dict(state)
                directory.cut_back(state["lengths"])
            except (Unreadable, KeyError, TypeError, ValueError, RuntimeError) as error:
                words = first_line(error)
                damage.append(
                    f"the checkpoint of iteration {iteration} cannot be used ({words}): passed over"
                )
                self.load_state_dict(before)
                continue
            checkpoints.drop(directory.path, after=iteration)  # their rows have been cut off
            recorded = directory.record(files.ENVIRONMENT)
            said = f"resumed after iteration {iteration}"
            if recorded is None:
                directory.write_record(files.ENVIRONMENT, environment)
                said += "; what it began on is not known, so perhaps not bit-exact"
            elif other := [key for key in SAME if recorded.get(key) != environment.get(key)]:
                device = environment["device"]
                said += f" on {device} where {', '.join(other)} differ: not bit-exact"
            if directory.record(files.CONFIG) is None:
                directory.write_record(files.CONFIG, self.plan.plain)
            self.resumed += [*damage, said]
            return True
        self.resumed = [*damage, "begun anew: no checkpoint could be used"] if damage else []
        return False

    def trained(self, on_measure: OnMeasure | None) -> tuple[Outcome, str | None]:
        """Train to the end. How that ended, and why where it was not its end."""
        path = self.plan.directory.path
        progress = RunProgress(self.console, self.training.iterations, self.iteration)
        try:
            with memory_for(self.batch), progress as self.progress:
                self.train(on_measure)
        except Interrupted as stop:
            self.save()
            why = f"{stop} after iteration {self.iteration}; {GOES_ON}"
            return Outcome("interrupted", path, why, stop.code), why
        except Diverged as error:
            why = f"{error}; try a smaller training.learning_rate"
            return Outcome("diverged", path, why, 1), why
        return Outcome("finished", path, verdict(self), 0), None

    def train(self, on_measure: OnMeasure | None) -> None:
        """Alg. 1 and 2, with every rule for the weights p. Raises Interrupted, always between two
        iterations or forward passes; Diverged."""
        if self.plan.device.type != "cpu":
            self.note(placed(self.images))
        step = self.ready_step()
        self.measure_if_due(on_measure)
        rule, every = self.learner.adversary, self.plan.config.checkpoint
        while self.iteration < self.end:
            self.plan.processes.check_stop(self.stop)
            if rule.feeds_on == "dataset" and rule.is_due(self.iteration):
                rule.update(self.full_losses())
            self.iterate(step)
            is_last = self.iteration == self.end
            if self.iteration - self.logged == len(self.log) or is_last:
                self.read_log()
            waited = time.monotonic() - self._saved_at
            by_clock = every.seconds is not None and waited >= every.seconds
            if (by_clock or self.iteration % every.every == 0) and not is_last:
                self.save()
            self.measure_if_due(on_measure)
        self.finish()

    def ready_step(self) -> Callable[[], None]:
        """What carries out an iteration: `step`, plain, compiled, or captured as a CUDA graph."""
        runtime, begun = self.plan.config.runtime, time.perf_counter()
        if self.head:
            self.keep_features()
        self.step_model = self.plan.processes.wrap(self.learner.entered(self.learner.model))
        step = self.step
        if runtime.compile:
            self.step_model = compiled(self)
        elif self.plan.device.type == "cuda" and runtime.graph == "auto":
            captured = captured_step(self)
            if isinstance(captured, str):
                self.note(f"no CUDA graph: {captured}")
            else:
                step = captured
        self.clock.seconds["start"] += time.perf_counter() - begun
        return step

    def keep_features(self) -> None:
        """Compute frozen features once where nothing random comes before them, or say why not."""
        begun = time.perf_counter()
        kept = features_of(self.batches, self.learner, self.head, self.stop.check)
        if isinstance(kept, str):
            self.note(f"frozen features are computed anew for each batch: {kept}")
            return
        self.images, self.batches = kept, self._batches(kept)
        self.learner.entrance = self.head
        count = sum(len(part) for parts in kept.parts.values() for part in parts.values())
        seconds = time.perf_counter() - begun
        self.note(f"frozen features of {count:,} examples computed once, in {seconds:.1f} s")

    def finish(self) -> None:
        """The models and predictions of a run that has come to its end."""
        self.read_log()
        if early := self.early:
            self.note(early)
        if not self.plan.processes.is_first:
            return
        path, learner = self.plan.directory.path, self.learner
        checkpoints.write(path / files.FINAL_MODEL, learner.model.state_dict())
        if self.evaluation.keep == "best_val":
            checkpoints.write(path / files.BEST_MODEL, self.best["model"])
        if self.evaluation.predictions:
            arrays = predictions(learner.logits, learner.model, self.images)
            self.plan.directory.write_predictions(arrays)

    @property
    def early(self) -> str:
        """Why it ended before T; "" where it did not."""
        if self.end == self.training.iterations:
            return ""
        return (
            f"stopped early after iteration {self.end} of {self.training.iterations}: no better "
            f"{self.by} on validation in {self.best['since']} measurements, since iteration "
            f"{self.best['iteration']} (training.patience)"
        )

    # --- measuring --------------------------------------------------------------------------------

    def measure_if_due(self, on_measure: OnMeasure | None) -> None:
        """Measure every so many iterations and after the last, but not twice where a run goes on
        from a checkpoint."""
        is_due = self.iteration == self.end or self.iteration % self.evaluation.every == 0
        if is_due and self.measured < self.iteration:
            self.measure()
            self.measured = self.iteration
            self.trackers.tell()
            if on_measure is not None:
                try:
                    on_measure(self.iteration, self.measures)
                except BaseException:  # the user's own: the same call goes on from here
                    self.stopped_by_user = True
                    if self.iteration < self.end:
                        self.save()
                    raise

    def measure(self) -> None:
        self.read_log()
        begun, learner, measures = time.perf_counter(), self.learner, dict[str, Measures]()
        if self.chooses_by_validation:  # first: the last measurement takes all training examples
            measures["val"] = self.measured_split("val")
            cost = self.cost(measures["val"])
            is_better = self.best["iteration"] == 0 or cost < self.best["value"]
            since = 0 if is_better or self.iteration == 0 else self.best["since"] + 1
            if since and since == self.training.patience:
                self.end = self.iteration
        splits = [split for split, parts in self.images.parts.items() if parts]
        measures = {s: measures.get(s) or self.measured_split(s) for s in splits}
        if learner.average is not None and self.iteration > 0:
            first = (self.batches(t).images for t in range(BLOCK))
            average = learner.average.ready(learner.model, first)
            for split in splits:
                measures[f"{split}_averaged"] = self.measured_split(split, average)
        self.measures = measures
        self.clock.seconds["measurement"] += time.perf_counter() - begun
        self.write_measures()
        for split, of_split in measures.items():
            self.check_finite(split, of_split)
        if self.chooses_by_validation and self.iteration > 0:
            self.best["since"] = since
            if is_better:
                model = copied(learner.model) if self.evaluation.keep == "best_val" else {}
                self.best |= {"iteration": self.iteration, "value": cost, "model": model}
        regularizer = getattr(learner.adversary, "regularizer", None)
        error = float(getattr(regularizer, "marginal_error", 0.0))
        self.marginal_error = max(self.marginal_error, error)
        worst_now = self.worst("train")
        line = self.progress.measured(self.iteration, worst_now["loss"], worst_now.get("accuracy"))
        self.plan.directory.append_log(line)

    @property
    def chooses_by_validation(self) -> bool:
        return self.evaluation.keep == "best_val" or self.training.patience is not None

    def measured_split(self, split: str, model: nn.Module | None = None) -> Measures:
        """Of the training set a fixed subset, but all at the end. model: the average; None: the
        model itself."""
        whole = self.iteration == self.end or split != "train"
        positions = {} if whole else self.subset
        loss, parts = self.measured_loss.of, self.images.parts[split]
        return self._measure(parts, model, loss, self.evaluation.metrics, positions)

    def _measure(
        self,
        parts: Mapping[str, Part],
        model: nn.Module | None,
        loss: Loss,
        metrics: Sequence[str] = (),
        positions: Mapping[str, Tensor] | None = None,
    ) -> Measures:
        model = model or self.learner.model
        return measure(
            lambda images: self.learner.logits(images, model),
            model,
            self.images,
            parts,
            loss,
            metrics,
            positions,
            self.stop.check,
            self.plan.processes,
        )

    def cost(self, validated: Measures) -> float:
        """What the best measurement has least of; infinite where it is not known."""
        values = [
            m[self.by.metric] for name, m in validated.items() if name not in self.plan.unseen
        ]
        cost = float(self.by.cost(values, METRICS[self.by.metric].better))
        if math.isfinite(cost):
            return cost
        self.warned["best"] = f"{self.by} on validation was no finite number: it chooses nothing"
        return math.inf

    def write_measures(self) -> None:
        seconds, rows, further = f"{self.clock.training():.3f}", [], []
        for split, of_split in self.measures.items():
            for name, m in of_split.items():
                values = m["loss"], m.get("accuracy"), m["examples"]
                rows.append((self.iteration, seconds, split, name, *values))
                for metric in self.evaluation.metrics:
                    further.append((self.iteration, split, name, metric, m[metric]))
        self.plan.directory.append(files.METRICS, rows)
        if further:
            self.plan.directory.append(files.MEASURES, further)

    def check_finite(self, split: str, measures: Measures) -> None:
        """Raises Diverged."""
        for name, m in measures.items():
            if not math.isfinite(m["loss"]):
                raise Diverged(self.iteration, name, split)

    def worst(self, split: str, unseen: bool = False) -> dict[str, float]:
        """Of the last measurement, over all domains but those of `data.unseen`, or over those.

        An individual model's worst is over the domains that it does not train on as well.
        """
        measures = self.measures[split].items()
        return worst({name: m for name, m in measures if (name in self.plan.unseen) == unseen})

    # --- writing down -----------------------------------------------------------------------------

    def read_log(self) -> None:
        """Read the device's log, and append what falls on a log interval."""
        self.clock.settle()
        count, every = self.iteration - self.logged, self.plan.config.logging.every
        rows = rows_of(self.log[:count], self.logged + 1, self.plan.trained) if count else []
        self.logged = self.iteration
        self.log_row.zero_()
        for row in rows:
            self.watch.see(row)
            self.weight_sums = [s + p for s, p in zip(self.weight_sums, row.weights, strict=True)]
            if row.iteration in (1, self.end) or row.iteration % every == 0:
                of_domains = zip(self.plan.trained, row.weights, row.losses, strict=True)
                lines = [(row.iteration, *one) for one in of_domains]
                self.plan.directory.append(files.WEIGHTS, lines)
        weights = rows[-1].weights if rows else self.learner.adversary.weights.tolist()
        self.progress.iterated(self.iteration, dict(zip(self.plan.trained, weights, strict=True)))
        for kind, warning in warnings_of(self).items():  # each kind once, when it first holds
            if kind not in self._announced:
                self._announced.add(kind)
                self.note(f"warning: {warning}")

    def note(self, line: str) -> None:
        """A line for the user, which train.log keeps."""
        self.plan.directory.append_log(line)
        self.progress.say(line)

    def conclude(self, status: str, message: str | None = None) -> None:
        """Write summary.json, and the end into train.log."""
        self.clock.settle()
        directory = self.plan.directory
        directory.write_record(files.SUMMARY, summary_of(self, status, message))
        directory.append_log(f"{status}{': ' + message if message else ''}")

    # --- its state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        generators = {"cpu": torch.get_rng_state()}
        if self.plan.device.type == "cuda":
            generators["cuda"] = torch.cuda.get_rng_state(self.plan.device)
        return {
            "learner": self.learner.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "watch": self.watch.state_dict(),
            "seconds": dict(self.clock.seconds),
            "random": generators,
            **{name: copy(getattr(self, name)) for name in KEPT},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; a run that goes on elsewhere leaves its old device's
        random generator out."""
        self.learner.load_state_dict(state["learner"])
        self.learner.load_optimizer(state["optimizer"])
        self.watch.load_state_dict(state["watch"])
        self.clock.seconds = dict.fromkeys(PARTS, 0.0) | state["seconds"]
        torch.set_rng_state(state["random"]["cpu"])
        if self.plan.device.type == "cuda" and "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"], self.plan.device)
        for name in KEPT:
            setattr(self, name, copy(state[name]))
        self.logged = self.iteration

    def save(self) -> None:
        """Write down all that the run needs to go on as if nothing had happened."""
        self.read_log()
        if self.plan.processes.is_first:
            path, lengths = self.plan.directory.path, self.plan.directory.lengths()
            checkpoints.save(path, self.iteration, {**self.state_dict(), "lengths": lengths})
        self._saved_at = time.monotonic()


def placed(images: Images) -> str:
    """Where the images are, in a line."""
    size = f"images: {images.images.nbytes / 1e6:.0f} MB"
    if images.resident:
        return f"{size}, all on {images.device}"
    return (
        f"{size} would take more than {LARGEST_SHARE:.0%} of the free memory of {images.device}: "
        "they stay on the host, and batches are read ahead"
    )


def copied(model: nn.Module) -> dict[str, Tensor]:
    """The model's state, on the host."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
