"""Numbers that a method takes from finished runs: f* of `regret`, p̄ of `retrain`.

They become settings before the run's identity is made: config.yaml holds the numbers, so that what
was trained does not change with what lies in the outputs folder later.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustmd.config import settings
from robustmd.config.identity import canonical, identity_of
from robustmd.config.paths import whole
from robustmd.config.ranges import DISTRIBUTION, is_number
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError, listed
from robustmd.runs.reader import Run, collect
from robustmd.runs.rerun import hydra_value

ITS_OWN = (*settings.TUNED, "domains_per_batch")  # of training, which need not be the same
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
        played = [_weights_of(run, self.trained) for run in runs]
        weights = [math.fsum(of_domain) / len(runs) for of_domain in zip(*played, strict=True)]
        if not DISTRIBUTION.holds(weights):
            raise UserError(
                f"method.run={path}: its mean weights are {weights}, no distribution over the "
                "domains"
            )
        seeds = ", ".join(str(run.seed) for run in runs)
        said = f"the mean weights of method={runs[0].method} in {path} (seeds {seeds})"
        return weights, f"method.weights: {said}"


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


def _weights_of(run: Run, trained: Sequence[str]) -> list[float]:
    found = run.summary.get("weights_mean")
    if not isinstance(found, dict) or not all(is_number(weight) for weight in found.values()):
        raise UserError(
            f"method.run: {run.path} has no weights_mean in its summary.json; train it again with "
            "force=true, or give method.weights=[…]"
        )
    if set(found) != set(trained):
        raise UserError(
            f"method.run: the weights of {run.path} are of {listed(list(found))}; must be of "
            f"{listed(trained)}"
        )
    return [float(found[name]) for name in trained]


def _runs_of_one_configuration(path: Path) -> list[Run]:
    if not path.is_dir():
        raise UserError(f"method.run={path}: no such folder; must hold a method's finished runs")
    found = collect(path)
    if not found.runs:
        reason = found.problems[0].reason if found.problems else "it is empty"
        raise UserError(f"method.run={path}: holds no finished run: {reason}")
    if len({run.path.parent for run in found.runs}) > 1:
        raise UserError(
            f"method.run={path}: holds runs of several configurations; name the folder of one, "
            f"as {found.runs[0].path.parent}"
        )
    return sorted(found.runs, key=lambda run: run.seed)
