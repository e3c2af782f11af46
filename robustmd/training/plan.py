"""What a run will be, settled once before anything is built: later code reads it from here.

Numbers that a method takes from finished runs (f* of `regret`, p̄ of `retrain`) become settings
before the run's identity is made: config.yaml holds the numbers, so that what was trained does not
change with what lies in the outputs folder later.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robustmd.backbones.networks.pretrained import WeightsFile
from robustmd.config import settings
from robustmd.config.identity import (
    canonical,
    config_hash,
    identity_of,
    number_changing,
    run_folder,
)
from robustmd.config.paths import whole
from robustmd.config.ranges import DISTRIBUTION, is_number
from robustmd.domains.class_notes import with_test_notes
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError, listed
from robustmd.registry import LOSSES, METRICS, Loss
from robustmd.runs import files
from robustmd.runs.reader import Run, collect
from robustmd.runs.rerun import hydra_value
from robustmd.runs.writer import RunDirectory
from robustmd.training.records import resolve_precision

ITS_OWN = (*settings.TUNED, "domains_per_batch")  # of training: may differ where losses compare
DIGITS = 6  # of f*; more would only make config.yaml hard to read


@dataclass(frozen=True)
class Plan:
    """The settled facts of one run.

    config: checked against the data; names, numbers and the precision stand where `auto`, an index
        or "take it from runs" stood.
    domains: the data.
    device: where the model and, where they fit, the images go.
    weights: the file that the model begins with, if it begins with one's.
    trained: the K domains that train, in order. unseen: those of `data.unseen`.
    domains_per_batch: M, how many of the K each iteration draws.
    read: what was read, as environment.json holds it.
    identity: what can change a number, with what the files hold.
    directory: where the run is written, whether it is there or not.
    notes: what is to be known of how it was settled.
    """

    config: settings.Config
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
        say: Callable[[str], None] = lambda _: None,
    ) -> Plan:
        """Settle them.

        Args:
            config: typed, its ranges checked.
            overrides: what the user typed, for the command that makes a run that is missing.
            say: is told what is to be known of the data's classes.

        Raises:
            UserError: the settings do not go with the data or the device; all examples are of one
                class; a run whose numbers are needed is missing; the directory is taken by a run
                on other bytes, or leads elsewhere.
        """
        config, trained, unseen, drawn = settings.settled(config, domains.names)
        _check_targets(config, domains)
        if config.data.augment != "none" and domains[0].train.images.dtype != np.uint8:
            raise UserError(
                f"data.augment={config.data.augment}: is of images, and data {domains.name} has "
                "features; leave it out"
            )
        domains = with_test_notes(domains, trained, say)
        precision = resolve_precision(config.runtime.precision, device)
        config = replace(config, runtime=replace(config.runtime, precision=precision))
        others = FinishedRuns(config, domains, trained, overrides)
        method, note = config.method.filled(others)
        config = replace(config, method=method)

        plain = settings.as_dict(config)
        sha256 = weights.sha256 if weights else None
        read = {"data_fingerprint": domains.fingerprint, "weights_sha256": sha256}
        identity, by_place = identity_of(plain, read), number_changing(plain)
        folder = _folder(config, read, identity, by_place)
        _refuse_links(folder, Path(config.paths.outputs))
        return cls(
            config=config,
            domains=domains,
            device=device,
            weights=weights,
            trained=trained,
            unseen=unseen,
            domains_per_batch=drawn,
            read=read,
            identity=identity,
            directory=RunDirectory(folder, further=bool(config.evaluation.metrics)),
            notes=(note,) if note else (),
        )

    @property
    def iterations(self) -> int:
        """T."""
        return self.config.training.iterations

    @property
    def loss_is_own(self) -> bool:
        """Whether what is trained on is a loss that somebody registered."""
        return self.config.training.loss != "cross_entropy"

    @property
    def shares(self) -> list[float] | None:
        """What the domains' parts of a batch are proportional to, [K]; None: they are equal."""
        asked, names = self.config.data.shares, self.domains.names
        if asked == "size":
            return [len(self.domains[name].train) for name in self.trained]
        return [asked[names.index(name)] for name in self.trained] if asked != "equal" else None

    @property
    def checkpoint_name(self) -> str:
        """Which run on which bytes: a checkpoint of another one is not taken."""
        sha256 = self.read["weights_sha256"] or ""
        ending = f"seed={self.config.seed} {self.domains.fingerprint} {sha256}"
        return f"{config_hash(self.identity)} {ending}"


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
        outputs = torch.zeros(2, len(domains.classes))
        first = domains.domains[0].train.targets[:1]
        _check_loss(
            LOSSES[config.training.loss], outputs, torch.from_numpy(first.repeat(2, axis=0))
        )


def _check_loss(loss: Loss, outputs: torch.Tensor, labels: torch.Tensor) -> None:
    what = f"training.loss={loss.name}: {loss.of.__module__}.{loss.of.__qualname__}"
    shapes = f"outputs {list(outputs.shape)} and labels {labels.dtype} {list(labels.shape)}"
    try:
        found = loss.of(outputs, labels)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        line = str(error).partition("\n")[0]
        raise UserError(f"{what} does not take {shapes}: {line}") from None
    if not isinstance(found, torch.Tensor) or found.shape != (len(outputs),):
        given = list(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise UserError(f"{what} gives {given} for {shapes}; must give a tensor [{len(outputs)}]")


def _folder(
    config: settings.Config,
    read: Mapping[str, Any],
    identity: Mapping[str, Any],
    by_place: Mapping[str, Any],
) -> Path:
    """The run's folder: where the settings name files, a run is also found under the name that it
    had when their paths were part of it.

    Raises:
        UserError: without force=true, if a run of the same settings read other bytes from there.
    """
    named = run_folder(Path(config.paths.outputs), identity, config.seed)
    if identity == by_place or named.is_dir():
        return named
    other = ""
    for path in sorted(named.parents[1].glob(f"*/{named.name}")):
        there = RunDirectory(path)
        found, its_read = there.record(files.CONFIG), there.record(files.ENVIRONMENT)
        if found is None or its_read is None:
            continue
        if recorded_identity(found, its_read) == canonical(identity):
            return path
        if recorded_identity(found, {}) == canonical(by_place):
            same_data = its_read.get("data_fingerprint") == read["data_fingerprint"]
            what = "began with other weights" if same_data else "read other data"
            other = f"{path}: that run {what} from the same place"
    if other and not config.force:
        raise UserError(
            f"{other}; force=true trains on what is there now beside it, "
            "paths.outputs=FOLDER elsewhere"
        )
    return named


def _refuse_links(path: Path, outputs: Path) -> None:
    """The user's own folder may be a link; one below it leads to where nobody asked to write."""
    if path.resolve() != outputs.resolve() / path.relative_to(outputs):
        raise UserError(f"{path}: a symbolic link below {outputs} leads elsewhere; remove it")


# --- numbers from finished runs -------------------------------------------------------------------


@dataclass(frozen=True)
class FinishedRuns:
    """The finished runs that a method may take numbers from.

    config: of the run to come, settled. domains: its data. trained: the K domains that train.
    overrides: what the user typed, for the command that makes a run that is missing.
    """

    config: settings.Config
    domains: DomainSet
    trained: Sequence[str]
    overrides: Sequence[str] = ()

    def best_losses(self) -> tuple[list[float], str]:
        """f*_k [K], the smallest final training loss of any run of Individual_k on its own domain,
        and a note of which runs.

        f*_k = min_W f_k(W) belongs to the domain, and every run on the same bytes bounds it from
        above, of whatever seed, learning rate, momentum and weight decay: all runs of `regret` play
        the same game.

        Raises:
            UserError: a domain has no such run; says what makes it.
        """
        folder = Path(self.config.paths.outputs) / self.config.data.name / "individual"
        fingerprint = self.domains.fingerprint
        wanted = _protocol(settings.as_dict(self.config), fingerprint)
        losses: dict[str, list[float]] = {name: [] for name in self.trained}
        for run in collect(folder).runs if folder.is_dir() else ():
            same_bytes = run.environment.get("data_fingerprint") == fingerprint
            if run.domain in losses and same_bytes and _protocol(run.config, fingerprint) == wanted:
                losses[run.domain].append(run.loss("train", run.domain))
        if missing := [name for name, found in losses.items() if not found]:
            raise UserError(
                f"method.reference=null: no finished individual run of "
                f"{listed(missing)} with these settings in {folder}; "
                f"make them with `{_individual_command(self.overrides, missing)}`, or give "
                "method.reference=[…], one number a domain"
            )
        best = {name: float(f"{min(found):.{DIGITS}g}") for name, found in losses.items()}
        said = listed([f"{name} {loss:g} (of {len(losses[name])})" for name, loss in best.items()])
        note = f"method.reference: smallest final training loss of individual runs: {said}"
        return list(best.values()), note

    def mean_weights(self, path: str | None) -> tuple[list[float], str]:
        """p̄ = (1/T) Σ_t p_t [K] of the runs of one configuration in the folder `path`, the mean
        over their seeds, and a note of which runs.

        Raises:
            UserError: there are none, or they are of other domains.
        """
        if path is None:
            raise UserError(
                "method=retrain: needs method.run=FOLDER, whose finished runs' mean weights to "
                "take, or method.weights=[…], one number a domain"
            )
        runs = _runs_of_one_configuration(Path(whole("method.run", path)))
        played = []
        for run in runs:
            found = run.summary.get("weights_mean")
            named = found if isinstance(found, dict) else {}
            weights = [named.get(name) for name in self.trained]
            if len(named) != len(weights) or not all(map(is_number, weights)):
                raise UserError(
                    f"method.run: weights_mean in {run.path / files.SUMMARY} is {found}; must have "
                    f"one number for each of {listed(self.trained)}; train that run again with "
                    "force=true, or give method.weights=[…]"
                )
            played.append(weights)
        mean = [math.fsum(of_domain) / len(runs) for of_domain in zip(*played, strict=True)]
        if not DISTRIBUTION.holds(mean):
            raise UserError(f"method.run={path}: its mean weights are {mean}, no distribution")
        seeds = ", ".join(str(run.seed) for run in runs)
        said = f"the mean weights of method={runs[0].method} in {path} (seeds {seeds})"
        return mean, f"method.weights: {said}"


def recorded_identity(config: Mapping[str, Any], read: Mapping[str, Any]) -> Any:
    """The canonical identity of a run, from its config.yaml and what it read (environment.json);
    None for what no run of ours wrote."""
    try:
        return canonical(identity_of(config, read))
    except (KeyError, TypeError, AttributeError):
        return None


def _protocol(config: Mapping[str, Any], fingerprint: str) -> Any:
    """What two runs must share for a loss of one to be a yardstick for the other: all but the
    method, when it is measured, and what every method tunes for itself."""
    identity = recorded_identity(config, {"data_fingerprint": fingerprint})
    if identity is None:
        return None
    shared = {k: v for k, v in identity.items() if k not in ("method", "evaluation")}
    shared["training"] = {k: v for k, v in shared["training"].items() if k not in ITS_OWN}
    return shared


def _individual_command(overrides: Sequence[str], missing: Sequence[str]) -> str:
    own = ("method", "row", "experiment")
    kept = [o for o in overrides if o.lstrip("+").partition("=")[0].partition(".")[0] not in own]
    names = ",".join(map(hydra_value, missing))
    return shlex.join(
        ["robustmd", "train", "-m", "method=individual", f"method.domain={names}", *kept]
    )


def _runs_of_one_configuration(path: Path) -> list[Run]:
    found = collect(path) if path.is_dir() else None
    if found is None:
        fault = "no such folder"
    elif not found.runs:
        fault = f"no finished run: {found.problems[0].reason if found.problems else 'it is empty'}"
    elif len({run.path.parent for run in found.runs}) > 1:
        fault = f"runs of several configurations; name one, as {found.runs[0].path.parent}"
    else:
        return sorted(found.runs, key=lambda run: run.seed)
    raise UserError(f"method.run={path}: must be the folder of one method's finished runs: {fault}")
