"""A finished run looked at again: its model measured on all splits, or the run trained anew."""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from torch import nn

from robustmd.backbones import build_backbone
from robustmd.backbones.changes import without_numbers
from robustmd.config import settings
from robustmd.config.check import recorded_config
from robustmd.config.loading import load_domains
from robustmd.console import make_console
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import UserError, listed
from robustmd.registry import LOSSES, BackboneFacts
from robustmd.runs import checkpoints, files
from robustmd.runs.reader import collect
from robustmd.runs.run import Run as Record
from robustmd.runs.untrusted import Unreadable, read_frame
from robustmd.runs.writer import RunDirectory
from robustmd.training.data import Images
from robustmd.training.environment import choose_device, memory_for, set_up
from robustmd.training.learner import computed
from robustmd.training.measure import Measures, measure
from robustmd.training.run import run as train

MODELS = {"last": files.FINAL_MODEL, "best": files.BEST_MODEL}
LOSS_TOLERANCE = 1e-4  # relative: another device or thread count sums in another order
MACHINE = ("python", "platform", "cpu", "device", "threads", "processes")
ENVIRONMENT = ("robustmd", "git_commit", *MACHINE)


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
    model = run_model(directory.path, config.backbone, BackboneFacts.of(domains), MODELS[which])
    model = model.to(device)
    images, loss = Images(domains, device, config.seed), LOSSES[config.training.loss]
    measures = {
        split: measure(lambda x: computed(model, x, precision), model, images, parts, loss.of)
        for split, parts in images.parts.items()
        if parts
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
    config = recorded_config(found, overrides)
    return config


def check_data(path: Path, environment: Mapping[str, Any], domains: DomainSet) -> None:
    """Are they the bytes that the run in `path` was trained on? Raises UserError."""
    recorded = environment.get("data_fingerprint")
    if recorded != domains.fingerprint:
        raise UserError(
            f"{path}: was trained on other data (fingerprint {str(recorded)[:12]}, "
            f"found {domains.fingerprint[:12]}); give the right folder with paths.data=FOLDER"
        )


def _table(measures: Mapping[str, Measures], unit: str) -> Table:
    head = f"loss ({unit})" if unit else "loss"
    table = Table("split", "domain", head, "accuracy (%)", "examples")
    for split, domains in measures.items():
        for name, m in domains.items():
            accuracy = f"{m['accuracy']:.2f}" if "accuracy" in m else "–"
            table.add_row(split, name, f"{m['loss']:.4f}", accuracy, str(m["examples"]))
    return table


def _compare(
    measures: Mapping[str, Measures], directory: RunDirectory, which: str, console: Console
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
        rows = read_frame(directory.path / files.METRICS)
        for row in rows[rows.iteration == iteration].to_dict("records"):
            found.setdefault(str(row["split"]), {})[str(row["domain"])] = row
    return found


def _agrees(measured: Mapping[str, Any], final: Any, split: str, name: str) -> bool:
    """Whether summary.json, whatever stands in it, has these numbers."""
    try:
        found = final[split][name]
        loss, examples = float(found["loss"]), float(found["examples"])
        accuracy = float(found["accuracy"]) if "accuracy" in measured else None
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return False
    same = abs(measured["loss"] - loss) <= LOSS_TOLERANCE * max(1.0, loss)
    if accuracy is not None:
        same &= abs(measured["accuracy"] - accuracy) <= 100.0 / measured["examples"] + 1e-9
    return same and examples == measured["examples"]


def run_model(
    path: Path, backbone: Any, facts: BackboneFacts, name: str = files.FINAL_MODEL
) -> nn.Module:
    """The module with the weights of the run's `files.FINAL_MODEL`, or `files.BEST_MODEL`, on the
    CPU. `backbone`: the settings that its config.yaml holds.

    Raises:
        UserError: there is no such model, or one that does not fit.
    """
    state = checkpoints.load_model(path, name)
    with memory_for(f"the model that {path / files.CONFIG} names"):
        expected = without_numbers(lambda: build_backbone(backbone, facts)).state_dict()
    sizes = {key: getattr(value, "shape", None) for key, value in state.items()}
    if sizes != {key: value.shape for key, value in expected.items()}:
        raise UserError(f"{path}: {name} does not fit its config.yaml")
    model = build_backbone(backbone, facts)
    model.load_state_dict(state)
    return model


# --- trained again --------------------------------------------------------------------------------


def reproduce(path: Path, overrides: Sequence[str], kept: Path | None) -> int:
    """Train again in `kept` (None: a temporary folder), compare, say what differs. Code 1 where the
    numbers are not the same. Raises UserError."""
    console = make_console()
    old = _finished(path)
    config = recorded_config(old.config, overrides)
    config.force, config.resume = False, True
    check_data(old.path, old.environment, load_domains(config, lambda _: None))
    out = kept or Path(tempfile.mkdtemp(prefix="robustmd-reproduce-"))
    if out.resolve() == old.path.resolve().parents[3]:
        raise UserError(f"--out {out}: holds the run itself; name another folder")
    config.paths.outputs = str(out.absolute())
    try:
        outcome = train(config, console, [])
    finally:
        if kept is None:
            with contextlib.suppress(OSError):  # only where nothing was begun in it
                out.rmdir()
    if outcome.exit_code:
        hint = f"; name the folder to go on: --out {out}" if kept is None else ""
        console.print(f"  {outcome.message}{hint}", soft_wrap=True)
        return outcome.exit_code
    new = _finished(outcome.directory)
    is_identical, words = compare(old, new)
    console.print(words, soft_wrap=True)
    differing = environment_differences(old.environment, new.environment)
    for line in differing or ["in the same environment"]:
        console.print(f"  {line}", soft_wrap=True)
    if kept is None and is_identical:
        shutil.rmtree(out)
    else:
        console.print(f"  {new.path}", soft_wrap=True)
    return 0 if is_identical else 1


def _finished(path: Path) -> Record:
    """The run in `path`, where it has finished and is sound."""
    found = collect(path)
    if len(found.runs) == 1 and found.runs[0].path == found.outputs:
        return found.runs[0]
    reason = next((p.reason for p in found.problems if p.scope == "run"), "no run directory")
    raise UserError(f"{path}: {reason}; only a finished run can be compared")


def compare(old: Record, new: Record) -> tuple[bool, str]:
    """Whether two runs have the same measurements and weights; in words, else the largest
    differences and since when there are any."""
    keys = ["iteration", "split", "domain"]
    rows, others = (_rows(run, files.METRICS).drop(columns="seconds") for run in (old, new))
    weights, other_weights = (_rows(run, files.WEIGHTS) for run in (old, new))
    if rows.equals(others) and weights.equals(other_weights):
        return True, f"identical: {len(rows)} measurements and every weight are the same"
    if not rows[[*keys, "examples"]].equals(others[[*keys, "examples"]]):
        return False, "different: they measured other things; see the two metrics.csv"
    apart = (rows[["loss", "accuracy"]] - others[["loss", "accuracy"]]).abs()
    first = rows.iteration[(apart.fillna(0) > 0).any(axis=1)]
    since = f"since iteration {first.min()}" if len(first) else "in the weights alone"
    end = rows.iteration == rows.iteration.max()
    words = [
        f"losses by up to {apart.loss.max():.2g} ({apart.loss[end].max():.2g} at the end)",
        f"accuracies by up to {apart.accuracy.max():.2f} points "
        f"({apart.accuracy[end].max():.2f} at the end)",
    ]
    named = words if not math.isnan(apart.accuracy.max()) else words[:1]
    return False, f"different {since}: {', '.join(named)}"


def _rows(run: Record, name: str) -> pd.DataFrame:
    try:
        return read_frame(run.path / name)
    except Unreadable as reason:
        raise UserError(f"{run.path}: {reason}; run it again with force=true") from None


def environment_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """ "torch 2.13 → 2.14": what differs between two environment.json."""
    pairs = [(key, old.get(key), new.get(key)) for key in ENVIRONMENT]
    before, now = (e.get("packages") for e in (old, new))
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        pairs += [(key, before.get(key), now.get(key)) for key in dict.fromkeys((*before, *now))]
    return [f"{key} {one} → {other}" for key, one, other in pairs if one != other]
