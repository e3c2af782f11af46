"""What finished runs say: that a run is there already, and whole; and numbers that methods take.

The numbers (f* of `regret`, p̄ of `retrain`) become settings before the run's identity is made:
config.yaml holds them, so that what was trained does not change with what lies in the outputs
folder later.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmd.config import settings
from robustmd.config.identity import canonical, identity_of
from robustmd.config.paths import whole
from robustmd.config.plugins import described
from robustmd.config.ranges import DISTRIBUTION
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError, listed
from robustmd.methods.individual import Individual
from robustmd.runs import checkpoints, files
from robustmd.runs.reader import Run, collect, judge, status_of
from robustmd.runs.rerun import command, hydra_value
from robustmd.runs.untrusted import Unreadable, read_record
from robustmd.runs.writer import RunDirectory

if TYPE_CHECKING:
    from robustmd.training.plan import Plan

ITS_OWN = (*settings.TUNED, "domains_per_batch")  # of training: may differ where losses compare
DIGITS = 6  # of f*; more would only make config.yaml hard to read
READ = {"data_fingerprint": "read other data", "weights_sha256": "began with other weights"}
ELSE = "force=true trains anew in its place, paths.outputs=FOLDER elsewhere"


def is_finished(plan: Plan) -> bool:
    """Whether the plan's directory holds the finished run of its settings, data and weights.

    Raises:
        UserError: it holds a run of others, or one that was damaged after it had finished.
    """
    config, directory = plan.config, plan.directory
    if config.force:
        return False
    try:
        has_finished = status_of(directory.path) == "finished"
        if has_finished:
            _check_whole(directory)
    except (Unreadable, UserError) as damage:
        raise UserError(f"{directory.path}: damaged: {damage}; force=true trains it anew") from None
    there, environment = directory.record(files.CONFIG), directory.record(files.ENVIRONMENT)
    if there is None or environment is None:
        return False
    recorded = recorded_identity(there, plan.read)  # as if it had read the same, see below
    refused, changed = "", changed_code(plan)
    if recorded is None:
        refused = "damaged: config.yaml lacks settings; force=true trains it anew"
    elif recorded != canonical(plan.identity) or there.get("seed") != config.seed:
        refused = f"holds a run of other settings (see its config.yaml); {ELSE}"
    elif other := [key for key, now in plan.read.items() if environment.get(key) != now]:
        key, did = other[0], READ[other[0]]
        before, now = str(environment.get(key))[:12], str(plan.read[key])[:12]
        refused = f"that run {did} ({key} {before}, now {now}); {ELSE}"
    elif changed and not has_finished and config.resume:
        refused = (
            f"that run began with other code in {listed(changed)}; resume=false begins anew, "
            "paths.outputs=FOLDER elsewhere"
        )
    if refused:
        raise UserError(f"{directory.path}: {refused}")
    if has_finished:
        # One that was killed at its very end has left them.
        drop_checkpoints(plan, plan.config.checkpoint.end)
    return has_finished


def changed_code(plan: Plan) -> list[str]:
    """The user's own modules whose file is not the one that the run there began with."""
    recorded = (plan.directory.record(files.ENVIRONMENT) or {}).get("plugins")
    plugins = recorded if isinstance(recorded, list) else []
    before = {p.get("module"): p.get("sha256") for p in plugins if isinstance(p, dict)}
    now = described(plan.config)
    return [str(p["module"]) for p in now if before.get(p["module"], p["sha256"]) != p["sha256"]]


def drop_checkpoints(plan: Plan, keeps_end: bool) -> None:
    """Of a finished run all, but that of its end, from which a longer one can go on, if asked."""
    checkpoints.drop(plan.directory.path, but=plan.iterations if keeps_end else None)


def _check_whole(directory: RunDirectory) -> None:
    """Raises `Unreadable` or `UserError` for the first of a finished run's files that is damaged
    or has gone. Runs from before checksums were recorded are held to being readable."""
    path = directory.path
    run, problems = judge(path, path)
    if run is None:
        raise Unreadable(problems[0].reason)
    read_record(path / files.ENVIRONMENT)
    recorded, evaluation = run.summary.get("sha256", {}), run.config.get("evaluation")
    if not isinstance(recorded, dict):
        raise Unreadable("summary.json names no sha256 of each file")
    asked = evaluation if isinstance(evaluation, dict) else {}
    predictions, best = asked.get("predictions") is True, asked.get("keep") == "best_val"
    try:
        found = directory.checksums(predictions=predictions, best=best)
    except OSError as error:
        name = os.path.relpath(error.filename, path)
        raise Unreadable(f"{name}: {error.strerror}") from None
    for name, digest in found.items():
        if recorded.get(name, digest) != digest:
            raise Unreadable(f"{name} is not what it was when the run finished")
    if not recorded:
        checkpoints.load_model(path)


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
        """As in `registry.FinishedRuns`: the smallest final training losses.

        f*_k = min_W f_k(W) belongs to the domain, and every run on the same bytes bounds it from
        above, of whatever seed, learning rate, momentum and weight decay: all runs of `regret` play
        the same game.
        """
        folder = Path(self.config.paths.outputs) / self.config.data.name / Individual.name
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
                "method.reference=[…], one number for each domain"
            )
        best = {name: float(f"{min(found):.{DIGITS}g}") for name, found in losses.items()}
        said = listed([f"{name} {loss:g} (of {len(losses[name])})" for name, loss in best.items()])
        note = f"method.reference: smallest final training loss of individual runs: {said}"
        return list(best.values()), note

    def mean_weights(self, path: str | None) -> tuple[list[float], str]:
        """As in `registry.FinishedRuns`: p̄ = (1/T) Σ_t p_t, the mean over the seeds."""
        if path is None:
            raise UserError(
                "method=retrain: needs method.run=FOLDER, whose finished runs' mean weights to "
                "take, or method.weights=[…], one number for each domain"
            )
        runs = _runs_of_one_configuration(Path(whole("method.run", path)))
        played = []
        for run in runs:
            found = run.summary.get("weights_mean")
            named = found if isinstance(found, dict) else {}
            weights = [named.get(name) for name in self.trained]
            if len(named) != len(weights) or not DISTRIBUTION.holds(weights):
                raise UserError(
                    f"method.run: weights_mean in {run.path / files.SUMMARY} is {found}; must have "
                    f"one number for each of {listed(self.trained)}, >= 0 and of sum 1; train that "
                    "run again with force=true, or give method.weights=[…]"
                )
            played.append(weights)
        mean = [math.fsum(of_domain) / len(runs) for of_domain in zip(*played, strict=True)]
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
    kept = [o for o in overrides if not o.lstrip("+").startswith(("method", "experiment"))]
    names = ",".join(map(hydra_value, missing))
    return command(["-m", f"method={Individual.name}", f"method.domain={names}", *kept])


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
