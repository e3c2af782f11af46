"""What a run will be, settled once before anything is built: later code reads it from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robustmd.backbones.networks.pretrained import WeightsFile
from robustmd.config import settings, validation
from robustmd.config.identity import (
    by_content,
    canonical,
    config_hash,
    identity_of,
    number_changing,
    run_folder,
)
from robustmd.config.loading import with_test_notes
from robustmd.domains.domain import DomainSet
from robustmd.errors import Say, UserError, first_line, listed
from robustmd.metrics import BestBy
from robustmd.registry import LOSSES, METRICS, Loss
from robustmd.runs import files
from robustmd.runs.writer import RunDirectory
from robustmd.training.finished_runs import FinishedRuns, recorded_identity


@dataclass(frozen=True)
class Plan:
    """The settled facts of one run.

    config: checked against the data; names and numbers stand where an index or "take it from runs"
        stood. plain: the same as plain data, as config.yaml holds it.
    device: where the model and, where they fit, the images go.
    weights: the file that the model begins with.
    trained: the K domains that train, in order. unseen: those of `data.unseen`.
    domains_per_batch: M, how many of the K each iteration draws.
    read: what was read, as environment.json holds it.
    identity: what can change a number, with what the files hold.
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
    domains_per_batch: int
    read: Mapping[str, Any]
    identity: Mapping[str, Any]
    directory: RunDirectory
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        config: settings.Config,
        domains: DomainSet,
        device: torch.device,
        weights: WeightsFile | None = None,
        overrides: Sequence[str] = (),
        say: Say = lambda _: None,
    ) -> Plan:
        """Settle them. `config`: validated, its precision resolved; `overrides`: what was typed,
        for the command that makes a missing run; `say` is told what is to be known of the classes.

        Raises:
            UserError: the settings do not go with the data or the device; all examples are of one
                class; a run whose numbers are needed is missing; the directory is taken by a run
                on other bytes, or leads elsewhere.
        """
        config, trained, unseen, drawn = validation.settled(config, domains.names)
        _check_targets(config, domains)
        if config.data.augment != "none" and domains[0].train.images.dtype != np.uint8:
            raise UserError(
                f"data.augment={config.data.augment}: is of images, and data {domains.name} has "
                "features; leave it out"
            )
        domains = with_test_notes(domains, trained, say)
        _check_validation(config, domains, unseen)
        method, note = config.method.filled(FinishedRuns(config, domains, trained, overrides))
        config = replace(config, method=method)

        alone = ""
        if len(domains) == 1:
            one = domains.names[0]
            alone = f"data {domains.name} has one domain, {one}: p is 1, whatever the method"

        plain = settings.as_dict(config)
        sha256 = weights.sha256 if weights else None
        read = {"data_fingerprint": domains.fingerprint, "weights_sha256": sha256}
        identity, folder = _placed(config, plain, read)
        outputs = Path(config.paths.outputs)
        # The user's own folder may be a link; one below it leads to where nobody asked to write.
        if folder.resolve() != outputs.resolve() / folder.relative_to(outputs):
            raise UserError(f"{folder}: a symbolic link below {outputs} leads elsewhere; remove it")
        return cls(
            config=config,
            plain=plain,
            domains=domains,
            device=device,
            weights=weights,
            trained=trained,
            unseen=unseen,
            domains_per_batch=drawn,
            read=read,
            identity=identity,
            directory=RunDirectory(folder, further=bool(config.evaluation.metrics)),
            notes=tuple(filter(None, (note, alone))),
        )

    @property
    def iterations(self) -> int:
        """T."""
        return self.config.training.iterations

    @property
    def sizes(self) -> list[int]:
        """n_k, [K]: images that domain k trains on, each once however many variants are seen."""
        return [self.domains[name].train.stored for name in self.trained]

    @property
    def shares(self) -> list[float] | None:
        """What the domains' parts of a batch are proportional to, [K]; None: they are equal."""
        asked, names = self.config.data.shares, self.domains.names
        if asked == "size":
            return [*self.sizes]
        return [asked[names.index(name)] for name in self.trained] if asked != "equal" else None

    def of_length(self, iterations: int) -> Plan:
        """The same with other iterations T, in this one's directory."""
        training = replace(self.config.training, iterations=iterations)
        config = replace(self.config, training=training)
        plain = settings.as_dict(config)
        return replace(self, config=config, plain=plain, identity=identity_of(plain, self.read))

    @property
    def checkpoint_name(self) -> str:
        """Which run on which bytes: a checkpoint of another one is not taken."""
        ending = f"{self.domains.fingerprint} {self.read['weights_sha256'] or ''}"
        return f"{config_hash(self.identity)} seed={self.config.seed} {ending}"


def _check_targets(config: settings.Config, domains: DomainSet) -> None:
    """Raises UserError for a loss or a metric of classes where labels are numbers, and the other
    way round; for a loss of a user's own that gives not one number for each of two examples."""
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
    if config.training.loss != "cross_entropy":
        labels = torch.from_numpy(domains[0].train.targets[:1].repeat(2, axis=0))
        _check_loss(LOSSES[config.training.loss], torch.zeros(2, len(domains.classes)), labels)


def _check_loss(loss: Loss, outputs: torch.Tensor, labels: torch.Tensor) -> None:
    what = f"training.loss={loss.name}: {loss.of.__module__}.{loss.of.__qualname__}"
    shapes = f"outputs {list(outputs.shape)} and labels {labels.dtype} {list(labels.shape)}"
    try:
        found = loss.of(outputs, labels)
        given = list(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        given = first_line(error)
    if given != [len(outputs)]:
        raise UserError(f"{what}: for {shapes} must give a tensor [{len(outputs)}], not: {given}")


def _placed(
    config: settings.Config, plain: Mapping[str, Any], read: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Path]:
    """The run's identity and its folder: where the settings name files, a run is also found under
    the name that it had when their paths were part of it. Raises UserError: a run of the same
    settings read other bytes from there, and force=true is not given."""
    by_place = number_changing(plain)
    identity = by_content(by_place, read)
    named = run_folder(Path(config.paths.outputs), identity, config.seed)
    if identity == by_place or named.is_dir():
        return identity, named
    other = ""
    for path in sorted(named.parents[1].glob(f"*/{named.name}")):
        there = RunDirectory(path)
        found, its_read = there.record(files.CONFIG), there.record(files.ENVIRONMENT)
        if found is None or its_read is None:
            continue
        if recorded_identity(found, its_read) == canonical(identity):
            return identity, path
        if recorded_identity(found, {}) == canonical(by_place):
            same_data = its_read.get("data_fingerprint") == read["data_fingerprint"]
            what = "began with other weights" if same_data else "read other data"
            other = f"{path}: that run {what} from the same place"
    if other and not config.force:
        raise UserError(
            f"{other}; force=true trains on what is there now beside it, "
            "paths.outputs=FOLDER elsewhere"
        )
    return identity, named


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
