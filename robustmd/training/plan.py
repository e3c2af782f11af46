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
from robustmd.config.resolve import resolve
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import UserError, listed
from robustmd.metrics import BestBy
from robustmd.registry import AUGMENTATIONS, METRICS
from robustmd.runs import files
from robustmd.runs.reader import STATUSES, judge
from robustmd.runs.untrusted import Unreadable, read_record
from robustmd.runs.writer import ReadDirectory, RunDirectory
from robustmd.training.distributed import Processes
from robustmd.training.environment import choose_device, set_up
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
    def sizes(self) -> list[int]:
        """n_k, [K]: images that domain k trains on, each once however many variants are seen."""
        return [self.domains[name].train.stored for name in self.trained]


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
    processes = Processes.here()
    device = processes.device(choose_device(config.runtime.device))
    precision = set_up(config.runtime, device)
    runtime = config.runtime.model_copy(update={"precision": precision})
    config = config.model_copy(update={"runtime": runtime})
    weights = find_weights(config.backbone)
    domains = load_domains(config, say)
    index = getattr(config.method, "domain", None)
    config, trained, unseen, drawn = resolve(config, domains.names)
    _check_targets(config, domains)
    domains = with_test_notes(domains, trained, say)
    _check_validation(config, domains, unseen)
    method, note = config.method.filled(FinishedRuns(config, domains, trained, overrides))
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
    directory = _directory(config, plain, read, processes)
    notes = tuple(filter(None, (note, alone)))
    plan = Plan(
        config, plain, domains, device, weights, trained, unseen, drawn, read, directory, notes,
        processes,
    )  # fmt: skip
    if processes.size > 1:
        _check_processes(plan)
    return plan


def _directory(
    config: settings.Config, plain: Mapping[str, Any], read: Mapping[str, Any], group: Processes
) -> RunDirectory:
    outputs = Path(config.paths.outputs)
    folder = run_folder(outputs, identity_of(plain, read), config.seed)
    # The user's own folder may be a link; one below it leads to where nobody asked to write.
    if folder.resolve() != outputs.resolve() / folder.relative_to(outputs):
        raise UserError(f"{folder}: a symbolic link below {outputs} leads elsewhere; remove it")
    if not group.is_first:
        return ReadDirectory(folder)
    return RunDirectory(folder, further=bool(config.evaluation.metrics))


def _check_targets(config: settings.Config, domains: DomainSet) -> None:
    """Raises UserError for a loss, a metric or an augmentation of another kind of data."""
    here = "numbers" if domains.are_numbers else "classes"
    if domains.are_numbers and config.training.loss == "cross_entropy":
        raise UserError(
            f"training.loss=cross_entropy: is of classes, and data {domains.name} has numbers as "
            "labels; register a loss of your own (docs/own_code.md)"
        )
    for name in config.evaluation.metrics:
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


def _check_validation(config: settings.Config, domains: DomainSet, unseen: Sequence[str]) -> None:
    """Raises UserError where something is chosen by validation sets that are not there, or by a
    metric that they do not have."""
    evaluation, patience = config.evaluation, config.training.patience
    asked = f"training.patience={patience}" if patience is not None else ""
    if evaluation.keep == "best_val":
        asked = "evaluation.keep=best_val"
    lacking = [one.name for one in domains if one.val is None and one.name not in unseen]
    if asked and lacking:
        raise UserError(
            f"{asked}: needs a validation set in each domain, and there is none in "
            f"{listed(lacking)}; hold training images out with data.validation=0.1"
        )
    if asked and domains.are_numbers and BestBy.of(evaluation.best_by).metric == "accuracy":
        raise UserError(
            f"evaluation.best_by={evaluation.best_by}: labels are numbers, which have no accuracy; "
            "choose by a loss, as worst_loss"
        )


def _check_processes(plan: Plan) -> None:
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
    identity = config_hash(identity_of(plan.plain, plan.read))
    plan.processes.check_same(f"{identity} {plan.config.seed} {plan.read} {described(plan.config)}")


def is_finished(plan: Plan) -> bool:
    """Whether the plan's directory holds the finished run of its settings, data and weights.

    Raises:
        UserError: it holds a run of others, or one whose records are damaged.
    """
    path, config = plan.directory.path, plan.config
    if config.force or not any(os.path.lexists(path / name) for name in files.ALL - files.LOCKING):
        return False
    try:
        status = read_record(path / files.SUMMARY).get("status")
        if status not in STATUSES:
            raise Unreadable("summary.json names no status")
        finished = status == "finished"
        recorded, environment = _records(path, finished)
        if not recorded or not environment:
            return False  # it was ended as it began
        is_same = recorded.get("seed") == config.seed and canonical(
            identity_of(recorded, plan.read)
        ) == canonical(identity_of(plan.plain, plan.read))
    except (Unreadable, KeyError, TypeError, AttributeError) as damage:
        words = damage if isinstance(damage, Unreadable) else "config.yaml lacks settings"
        raise UserError(f"{path}: damaged: {words}; force=true trains it anew") from None
    refused, changed = "", changed_code(plan)
    if not is_same:
        refused = f"holds a run of other settings (see its config.yaml); {ELSE}"
    elif other := [key for key, now in plan.read.items() if environment.get(key) != now]:
        key, did = other[0], READ[other[0]]
        before, now = str(environment.get(key))[:12], str(plan.read[key])[:12]
        refused = f"that run {did} ({key} {before}, now {now}); {ELSE}"
    elif changed and not finished and config.resume:
        refused = (
            f"that run began with other code in {listed(changed)}; resume=false begins anew, "
            "paths.outputs=FOLDER elsewhere"
        )
    if refused:
        raise UserError(f"{path}: {refused}")
    return finished


def _records(path: Path, finished: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """config.yaml and environment.json; empty where an unfinished run has none that can be read.
    Raises Unreadable: of a finished run something is damaged or missing."""
    if not finished:
        directory = RunDirectory(path)
        found = (directory.record(name) or {} for name in (files.CONFIG, files.ENVIRONMENT))
        return next(found), next(found)
    run, problems = judge(path, path)
    if run is None:
        raise Unreadable(problems[0].reason)
    for name in (files.WEIGHTS, files.FINAL_MODEL):
        if not (path / name).is_file():
            raise Unreadable(f"{name} is missing")
    return run.config, read_record(path / files.ENVIRONMENT)


def changed_code(plan: Plan) -> list[str]:
    """The user's own modules whose file is not the one that the run there began with."""
    recorded = (plan.directory.record(files.ENVIRONMENT) or {}).get("plugins")
    plugins = recorded if isinstance(recorded, list) else []
    before = {p.get("module"): p.get("sha256") for p in plugins if isinstance(p, dict)}
    now = described(plan.config)
    return [str(p["module"]) for p in now if before.get(p["module"], p["sha256"]) != p["sha256"]]
