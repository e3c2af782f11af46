"""Numbers that methods take from finished runs: f* of `regret`, p̄ of `retrain`.

They become settings before the run's identity is made: config.yaml holds them, so that what was
trained does not change with what lies in the outputs folder later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustmd.config import settings
from robustmd.config.identity import canonical, identity_of
from robustmd.config.paths import whole
from robustmd.config.ranges import DISTRIBUTION
from robustmd.config.values import hydra_value
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import UserError, listed
from robustmd.runs import files
from robustmd.runs.reader import collect
from robustmd.runs.rerun import command
from robustmd.runs.run import Run

ITS_OWN = (*settings.TUNED, "domains_per_batch")  # of training: may differ where losses compare
DIGITS = 6  # of f*; more would only make config.yaml hard to read


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
        folder = Path(self.config.paths.outputs) / self.config.data.name / "individual"
        fingerprint = self.domains.fingerprint
        wanted = _protocol(self.config.model_dump(), fingerprint)
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


def _protocol(config: Mapping[str, Any], fingerprint: str) -> Any:
    """What two runs must share for a loss of one to be a yardstick for the other: all but the
    method, when it is measured, and what every method tunes for itself."""
    try:
        identity = canonical(identity_of(config, {"data_fingerprint": fingerprint}))
    except (KeyError, TypeError, AttributeError):  # no run of ours wrote that
        return None
    shared = {k: v for k, v in identity.items() if k not in ("method", "evaluation")}
    shared["training"] = {k: v for k, v in shared["training"].items() if k not in ITS_OWN}
    return shared


def _individual_command(overrides: Sequence[str], missing: Sequence[str]) -> str:
    kept = [o for o in overrides if not o.lstrip("+").startswith(("method", "experiment"))]
    names = ",".join(map(hydra_value, missing))
    return command(["-m", "method=individual", f"method.domain={names}", *kept])


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
