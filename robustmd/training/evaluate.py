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
from rich.table import Table
from torch import nn

from robustmd.backbones import build_backbone
from robustmd.backbones.changes import without_numbers
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
    recorded = directory.record(files.CONFIG)
    if recorded is None:
        raise UserError(
            f"{directory.path}: no run directory (it has no readable config.yaml); "
            "`robustmd runs FOLDER` lists those in a folder"
        )
    config = recorded_config(recorded, overrides)
    device = choose_device(config.runtime.device)
    precision = set_up(config.runtime, device)
    domains = load_domains(config, console.print)
    check_data(path, directory.record(files.ENVIRONMENT) or {}, domains)
    model = run_model(directory.path, config.backbone, BackboneFacts.of(domains), MODELS[which])
    model = model.to(device)
    images, loss = Images(domains, device, config.seed), LOSSES[config.training.loss]
    measures = {
        split: measure(model, images, parts, loss.of, precision=precision)
        for split, parts in images.parts.items()
        if parts
    }
    head = f"loss ({loss.unit})" if loss.unit else "loss"
    table = Table("split", "domain", head, "accuracy (%)", "examples")
    for split, of_split in measures.items():
        for name, m in of_split.items():
            accuracy = f"{m['accuracy']:.2f}" if "accuracy" in m else "–"
            table.add_row(split, name, f"{m['loss']:.4f}", accuracy, str(m["examples"]))
    console.print(table)
    is_same, words = agreement(measures, directory, which)
    console.print(words)
    return 0 if is_same else 1


def check_data(path: Path, environment: Mapping[str, Any], domains: DomainSet) -> None:
    """Are they the bytes that the run in `path` was trained on? Raises UserError."""
    recorded = environment.get("data_fingerprint")
    if recorded != domains.fingerprint:
        raise UserError(
            f"{path}: was trained on other data (fingerprint {str(recorded)[:12]}, "
            f"found {domains.fingerprint[:12]}); give the right folder with paths.data=FOLDER"
        )


def agreement(
    measures: Mapping[str, Measures], directory: RunDirectory, which: str
) -> tuple[bool, str]:
    """Whether the run's own record has these numbers, in words. Accuracy may move by one example,
    where a tie breaks anew."""
    summary, where = directory.record(files.SUMMARY) or {}, files.SUMMARY
    recorded: Any = summary.get("final")
    if which == "best":  # of the training set it may have measured a part
        where, recorded = files.METRICS, {}
        measures = {split: of for split, of in measures.items() if split != "train"}
        with contextlib.suppress(Unreadable, KeyError, TypeError):
            rows = read_frame(directory.path / files.METRICS)
            for row in rows[rows.iteration == summary["best"]["iteration"]].to_dict("records"):
                recorded.setdefault(row["split"], {})[row["domain"]] = row
    if not recorded:
        return True, f"{where} has no measures to compare with: the run is not finished"
    differing = []
    for split, of_split in measures.items():
        for name, m in of_split.items():
            tolerance = {
                "loss": LOSS_TOLERANCE * max(1.0, abs(m["loss"])),
                "accuracy": 100.0 / m["examples"] + 1e-9,
                "examples": 0,
            }
            try:
                found = recorded[split][name]
                is_same = all(abs(m[k] - found[k]) <= tolerance[k] for k in tolerance if k in m)
            except (LookupError, TypeError):  # whatever stands in the file
                is_same = False
            differing += [] if is_same else [f"{split}/{name}"]
    if differing:
        return False, f"differs from {where} in: {listed(differing)}"
    return True, f"agrees with {where}"


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
    tables: list[pd.DataFrame] = []
    for run in (old, new):
        try:
            tables += [read_frame(run.path / name) for name in (files.METRICS, files.WEIGHTS)]
        except Unreadable as reason:
            raise UserError(f"{run.path}: {reason}; run it again with force=true") from None
    rows, weights, others, other_weights = tables
    rows, others = rows.drop(columns="seconds"), others.drop(columns="seconds")
    if rows.equals(others) and weights.equals(other_weights):
        return True, f"identical: {len(rows)} measurements and every weight are the same"
    measured = ["iteration", "split", "domain", "examples"]
    if not rows[measured].equals(others[measured]):
        return False, "different: they measured other things; see the two metrics.csv"
    apart = (rows[["loss", "accuracy"]] - others[["loss", "accuracy"]]).abs()
    first = rows.iteration[(apart.fillna(0) > 0).any(axis=1)]
    since = f"since iteration {first.min()}" if len(first) else "in the weights alone"
    end = apart[rows.iteration == rows.iteration.max()].max()
    most = apart.max()
    words = f"losses by up to {most.loss:.2g} ({end.loss:.2g} at the end)"
    if not math.isnan(most.accuracy):
        words += f", accuracies by up to {most.accuracy:.2f} points ({end.accuracy:.2f} at the end)"
    return False, f"different {since}: {words}"


def environment_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """ "torch 2.13 → 2.14": what differs between two environment.json."""
    pairs = [(key, old.get(key), new.get(key)) for key in ENVIRONMENT]
    before, now = (e.get("packages") for e in (old, new))
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        pairs += [(key, before.get(key), now.get(key)) for key in dict.fromkeys((*before, *now))]
    return [f"{key} {one} → {other}" for key, one, other in pairs if one != other]
