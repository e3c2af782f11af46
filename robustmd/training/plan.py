"""What a run will be, settled and checked before anything is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

import torch

from robustmd.backbones.weights import WeightsFile, find_weights
from robustmd.config import settings
from robustmd.config.identity import canonical, config_hash, identity_of, run_folder
from robustmd.config.loading import load_domains, with_test_notes
from robustmd.config.plugins import described
from robustmd.config.resolve import resolve, with_shorter_warmup
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import UserError, listed
from robustmd.metrics import BestBy
from robustmd.registry import AUGMENTATIONS, METRICS
from robustmd.runs import files
from robustmd.runs.reader import STATUSES, Records, judge
from robustmd.runs.writer import ReadDirectory, RunDirectory
from robustmd.training.distributed import Processes
from robustmd.training.environment import choose_device, describe, set_up
from robustmd.training.finished_runs import FinishedRuns

READ = {"data_fingerprint": "read other data", "weights_sha256": "began with other weights"}
ELSE = "force=true trains anew in its place, paths.outputs=FOLDER elsewhere"


@dataclass(frozen=True)
class Plan:
    """The facts of one run.

    config: checked against the data; names and numbers stand where an index or "take it from runs"
        stood. plain: the same as plain data, as config.yaml holds it.
    trained: the K domains that train, in order. unseen: those of `data.unseen`.
    drawn: M, how many of the K each iteration draws.
    read: what was read, as environment.json holds it.
    directory: where the run is written, whether it is there or not.
    notes: what is to be known of how it was settled.
    """

    config: settings.Config
    plain: Mapping[str, Any]
    domains: DomainSet
    device: torch.device
    weights: WeightsFile | None
    trained: tuple[str, ...]
    unseen: tuple[str, ...]
    drawn: int
    read: Mapping[str, Any]
    directory: RunDirectory
    notes: tuple[str, ...]
    processes: Processes

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the run's numbers; its hash names the folder."""
        return identity_of(self.plain, self.read)


def make_plan(
    config: settings.Config, overrides: Sequence[str], say: Callable[[str], None]
) -> Plan:
    """The plan for the data that are there; torch is set up for it.

    Args:
        config: validated. overrides: what was typed, for the command that makes a missing run.

    Raises:
        UserError: the settings do not go with the data or the device; a run whose numbers are
            needed is missing; the outputs folder leads elsewhere.
    """
    config, shorter = with_shorter_warmup(config, overrides)
    processes = Processes.here()
    device = processes.device(choose_device(config.runtime.device))
    precision = set_up(config.runtime, device)
    runtime = config.runtime.model_copy(update={"precision": precision})
    config = config.model_copy(update={"runtime": runtime})
    weights = find_weights(config.backbone)
    domains = load_domains(config, say)
    index = getattr(config.method, "domain", None)
    config, trained, unseen, drawn = resolve(config, domains.names)
    check_domains(config, domains, unseen)
    domains = with_test_notes(domains, trained, say)
    method, taken = config.method.filled(FinishedRuns(config, domains, trained, overrides))
    config = config.model_copy(update={"method": method})
    name = getattr(method, "domain", None)
    if index is not None and normalize("NFC", str(index)) != name:
        say(f"method.domain={index}: no domain is called so; by index it is {name}")
    alone = ""
    if len(domains) == 1:
        alone = (
            f"data {domains.name} has one domain, {domains.names[0]}: p is 1, whatever the method"
        )
    plain = config.model_dump()
    sha256 = weights.sha256 if weights else None
    read = {"data_fingerprint": domains.fingerprint, "weights_sha256": sha256}
    outputs = Path(config.paths.outputs)
    folder = run_folder(outputs, identity_of(plain, read), config.seed)
    # The user's own folder may be a link; one below it leads to where nobody asked to write.
    if folder.resolve() != outputs.resolve() / folder.relative_to(outputs):
        raise UserError(f"{folder}: a symbolic link below {outputs} leads elsewhere; remove it")
    kind = RunDirectory if processes.is_first else ReadDirectory
    directory = kind(folder, further=bool(config.evaluation.metrics))
    notes = tuple(note for note in (shorter, taken, alone) if note)
    plan = Plan(
        config, plain, domains, device, weights, trained, unseen, drawn, read, directory, notes,
        processes,
    )  # fmt: skip
    if processes.size > 1:
        check_processes(plan)
    return plan


def check_domains(config: settings.Config, domains: DomainSet, unseen: Sequence[str]) -> None:
    """Raises UserError for a loss, a metric or an augmentation of another kind of data, or where
    something is chosen by validation sets that are not there."""
    training, evaluation = config.training, config.evaluation
    here = "numbers" if domains.are_numbers else "classes"
    if domains.are_numbers and training.loss == "cross_entropy":
        raise UserError(
            f"training.loss=cross_entropy: is of classes, and data {domains.name} has numbers as "
            "labels; register a loss of your own (docs/own_code.md)"
        )
    for name in evaluation.metrics:
        if METRICS[name].targets != here:
            raise UserError(
                f"evaluation.metrics=[{name}]: is of {METRICS[name].targets}, and the labels of "
                f"data {domains.name} are {here}; leave it out"
            )
    if config.data.augment != "none" and not domains.are_images:
        raise UserError(
            f"data.augment={config.data.augment}: is of images, and data {domains.name} has "
            "features; leave it out"
        )
    if evaluation.keep == "best_val":
        asked = "evaluation.keep=best_val"
    elif training.patience is not None:
        asked = f"training.patience={training.patience}"
    else:
        return
    lacking = [d.name for d in domains if d.val is None and d.name not in unseen]
    if lacking:
        raise UserError(
            f"{asked}: needs a validation set in each domain, and there is none in "
            f"{listed(lacking)}; hold training images out with data.validation=0.1"
        )
    if domains.are_numbers and BestBy.of(evaluation.best_by).metric == "accuracy":
        raise UserError(
            f"evaluation.best_by={evaluation.best_by}: labels are numbers, which have no accuracy; "
            "choose by a loss, as worst_loss"
        )


def check_processes(plan: Plan) -> None:
    """Raises UserError where several processes cannot train by that plan."""
    training, size = plan.config.training, plan.processes.size
    augmentation = AUGMENTATIONS.get(plan.config.data.augment)
    refused = ""
    if plan.config.runtime.compile:
        refused = "runtime.compile=true: leave it out"
    elif augmentation is not None and augmentation.numbers is None:
        refused = f"data.augment={augmentation.name}: draws for a whole batch; give it numbers=N"
    elif training.batch_size // plan.drawn * plan.drawn < size:
        refused = f"training.batch_size={training.batch_size}: must have an example for each"
    if refused:
        raise UserError(f"torchrun, {size} processes: {refused}")
    code = described(plan.config)
    plan.processes.check_same(f"{config_hash(plan.identity)} {plan.config.seed} {plan.read} {code}")


def environment_of(plan: Plan, overrides: Sequence[str]) -> dict[str, Any]:
    """What environment.json holds: the machine, what was typed, the user's code, what was read."""
    named = [text.partition("=")[2] for text in overrides if text.startswith("experiment=")]
    return {
        "overrides": list(overrides),
        "folder": str(Path.cwd()),
        **describe(plan.device),
        **({"processes": plan.processes.size} if plan.processes.size > 1 else {}),
        "experiment": named[0] if named else None,
        "plugins": described(plan.config),
        **plan.read,
    }


def is_finished(plan: Plan) -> bool:
    """Whether the plan's directory holds the finished run of its settings, data and weights.

    Raises:
        UserError: it holds a run of others, or one whose records are damaged.
    """
    path, config = plan.directory.path, plan.config
    if config.force or not any(os.path.lexists(path / name) for name in files.ALL - files.LOCKING):
        return False
    records = Records.of(path)
    status, damage = records.summary.get("status"), records.faults.get(files.SUMMARY, "")
    if not damage and status not in STATUSES:
        damage = "summary.json names no status"
    elif status == "finished":
        run, problems = judge(path, path, records)
        lacking = [f for f in (files.WEIGHTS, files.FINAL_MODEL) if not (path / f).is_file()]
        damage = problems[0].reason if run is None else records.faults.get(files.ENVIRONMENT, "")
        damage = damage or "".join(f"{name} is missing" for name in lacking[:1])
    elif not damage and records.faults:
        return False  # it was ended as it began
    is_same = records.config.get("seed") == config.seed
    try:
        recorded = None if damage else canonical(identity_of(records.config, plan.read))
    except (KeyError, TypeError, AttributeError):
        damage = "config.yaml lacks settings"
    if damage:
        raise UserError(f"{path}: damaged: {damage}; force=true trains it anew")
    refused, changed, environment = "", changed_code(plan), records.environment
    if not is_same or recorded != canonical(plan.identity):
        refused = f"holds a run of other settings (see its config.yaml); {ELSE}"
    elif other := [key for key, now in plan.read.items() if environment.get(key) != now]:
        before, now = str(environment.get(other[0]))[:12], str(plan.read[other[0]])[:12]
        refused = f"that run {READ[other[0]]} ({other[0]} {before}, now {now}); {ELSE}"
    elif changed and status != "finished" and config.resume:
        refused = (
            f"that run began with other code in {listed(changed)}; resume=false begins anew, "
            "paths.outputs=FOLDER elsewhere"
        )
    if refused:
        raise UserError(f"{path}: {refused}")
    return status == "finished"


def changed_code(plan: Plan) -> list[str]:
    """The user's own modules whose file is not the one that the run there began with."""
    recorded = (plan.directory.record(files.ENVIRONMENT) or {}).get("plugins")
    plugins = recorded if isinstance(recorded, list) else []
    before = {p.get("module"): p.get("sha256") for p in plugins if isinstance(p, dict)}
    now = described(plan.config)
    return [str(p["module"]) for p in now if before.get(p["module"], p["sha256"]) != p["sha256"]]
