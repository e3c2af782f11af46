"""A finished run's model, measured again on all splits."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from robustmd.backbones import build_backbone
from robustmd.backbones.networks.changes import without_numbers
from robustmd.config import settings, validation
from robustmd.config.loading import load_domains
from robustmd.config.typed import typed_from_file
from robustmd.console import make_console
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError, listed
from robustmd.registry import LOSSES, BackboneFacts
from robustmd.runs import checkpoints, files
from robustmd.runs.run import Measurement
from robustmd.runs.untrusted import Unreadable, read_table
from robustmd.runs.writer import RunDirectory
from robustmd.training.learner import InPrecision
from robustmd.training.measurement import Measure, measure
from robustmd.training.pool import resident_splits
from robustmd.training.records import choose_device, memory_for, set_up

MODELS = {"last": files.FINAL_MODEL, "best": files.BEST_MODEL}
LOSS_TOLERANCE = 1e-4  # relative: another device or thread count sums in another order


def evaluate(path: Path, overrides: Sequence[str], which: str) -> int:
    """Measure the run's model `which` of MODELS, print, and compare with the run's summary. Code 1
    where they disagree. Raises UserError."""
    console = make_console()
    directory = RunDirectory(path.resolve() if path.is_symlink() else path)  # typed: trusted
    config = _config(directory, overrides)
    device = choose_device(config.runtime.device)
    precision = set_up(config.runtime, device)
    domains = load_domains(config, console.print)
    check_data(path, directory.record(files.ENVIRONMENT) or {}, domains)
    facts = BackboneFacts.of(domains)
    summary = directory.record(files.SUMMARY) or {}
    model = run_model(directory.path, summary, config.backbone, facts, MODELS[which])
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    computing = InPrecision(model, precision)
    loss = LOSSES[config.training.loss]
    measures = {
        split: measure(computing, examples, loss=loss.of)
        for split, examples in resident_splits(domains, device, config.seed).items()
        if examples
    }
    console.print(_table(measures, loss.unit))
    return _compare(measures, directory, which, console)


def _config(directory: RunDirectory, overrides: Sequence[str]) -> settings.Config:
    found = directory.record(files.CONFIG)
    if found is None:
        raise UserError(
            f"{directory.path}: no run directory (it has no readable config.yaml); "
            "`robustmd runs FOLDER` lists those in a folder"
        )
    config = typed_from_file(found, overrides)
    validation.validate(config)
    return config


def check_data(path: Path, environment: Mapping[str, Any], domains: DomainSet) -> None:
    """Are they the bytes that the run in `path` was trained on? Raises UserError."""
    recorded = environment.get("data_fingerprint")
    if recorded != domains.fingerprint:
        raise UserError(
            f"{path}: was trained on other data (fingerprint {str(recorded)[:12]}, "
            f"found {domains.fingerprint[:12]}); give the right folder with paths.data=FOLDER"
        )


def _table(measures: Mapping[str, Mapping[str, Measure]], unit: str) -> Table:
    head = f"loss ({unit})" if unit else "loss"
    table = Table("split", "domain", head, "accuracy (%)", "examples")
    for split, domains in measures.items():
        for name, m in domains.items():
            accuracy = "–" if m.accuracy is None else f"{m.accuracy:.2f}"
            table.add_row(split, name, f"{m.loss:.4f}", accuracy, str(m.examples))
    return table


def _compare(
    measures: Mapping[str, Mapping[str, Measure]],
    directory: RunDirectory,
    which: str,
    console: Console,
) -> int:
    """Does the run say the same? Accuracy may move by one example, where a tie breaks anew."""
    summary = directory.record(files.SUMMARY) or {}
    recorded, where = summary.get("final"), files.SUMMARY
    if which == "best":
        recorded, where = _measured_then(directory, summary.get("best")), files.METRICS
    differing = [
        f"{split}/{name}"
        for split, domains in measures.items()
        for name, m in domains.items()
        if (which == "last" or split != "train")  # of which it may have measured a part
        and not _agrees(m, recorded, split, name)
    ]
    if not recorded:
        console.print(f"{where} has no measures to compare with: the run is not finished")
    elif differing:
        console.print(f"differs from {where} in: {listed(differing)}")
    else:
        console.print(f"agrees with {where}")
    return 1 if differing else 0


def _measured_then(directory: RunDirectory, best: Any) -> dict[str, dict[str, Any]]:
    """split -> domain -> what metrics.csv has of the best measurement."""
    found: dict[str, dict[str, Any]] = {}
    iteration = best.get("iteration") if isinstance(best, dict) else None
    with contextlib.suppress(Unreadable):
        for row in (Measurement(*values) for values in read_table(directory.path / files.METRICS)):
            if row.iteration == iteration:
                found.setdefault(row.split, {})[row.domain] = row._asdict()
    return found


def _agrees(measured: Measure, final: Any, split: str, name: str) -> bool:
    """Whether summary.json, whatever stands in it, has these numbers."""
    try:
        found = final[split][name]
        loss, examples = float(found["loss"]), float(found["examples"])
        accuracy = None if measured.accuracy is None else float(found["accuracy"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return False
    same_loss = abs(measured.loss - loss) <= LOSS_TOLERANCE * max(1.0, loss)
    one_example = 100.0 / measured.examples
    if measured.accuracy is not None and accuracy is not None:
        same_loss &= abs(measured.accuracy - accuracy) <= one_example + 1e-9
    return same_loss and examples == measured.examples


def run_model(
    path: Path,
    summary: Mapping[str, Any],
    backbone: Any,
    facts: BackboneFacts,
    name: str = files.FINAL_MODEL,
) -> nn.Module:
    """The module with the weights of the run's `files.FINAL_MODEL`, or `files.BEST_MODEL`, on the
    CPU. `backbone`: the settings that its config.yaml holds.

    Raises:
        UserError: there is no such model, or one that is not the run's.
    """
    recorded = summary.get("sha256")
    wanted = recorded.get(name) if isinstance(recorded, dict) else None
    state = checkpoints.load_model(path, name)
    if wanted not in (None, files.sha256(path / name)):
        raise UserError(f"{path}: {name} is not the model that it finished with")
    with memory_for(f"the model that {path / files.CONFIG} names"):
        expected = without_numbers(lambda: build_backbone(backbone, facts)).state_dict()
    sizes = {key: getattr(value, "shape", None) for key, value in state.items()}
    if sizes != {key: value.shape for key, value in expected.items()}:
        raise UserError(f"{path}: {name} does not fit its config.yaml")
    model = build_backbone(backbone, facts)
    model.load_state_dict(state)
    return model
