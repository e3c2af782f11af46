"""Numbers that a method takes from finished runs: f* of `regret`, p̄ of `retrain`.

They become settings before the run's identity is made: config.yaml holds the numbers, so that what
was trained does not change with what lies in the outputs folder later.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustmd import settings
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError, listed
from robustmd.paths import whole
from robustmd.ranges import DISTRIBUTION, is_number
from robustmd.runs.identity import canonical
from robustmd.runs.reader import Run, collect
from robustmd.runs.rerun import hydra_value

ITS_OWN = (*settings.TUNED, "domains_per_batch")  # of training, which need not be the same
DIGITS = 6  # of f*; more would only make config.yaml hard to read


@dataclass(frozen=True)
class FinishedRuns:
    """The finished runs that a method may take numbers from.

    config: of the run to come, settled. domains: its data. overrides: what the user typed, for the
    command that makes a run that is missing.
    """

    config: settings.Config
    domains: DomainSet
    overrides: Sequence[str] = ()

    @property
    def trained(self) -> tuple[str, ...]:
        return settings.trained_domains(self.config, self.domains.names)

    def best_losses(self) -> tuple[list[float], str]:
        """f*_k [K] of the trained domains, from individual runs on the same bytes, and a note.

        Raises:
            UserError: a domain has no such run; says what makes it.
        """
        return _best_losses(self.config, self.domains, self.trained, self.overrides)

    def mean_weights(self, path: str | None) -> tuple[list[float], str]:
        """p̄ [K] of the runs of one configuration in the folder `path`, and a note.

        Raises:
            UserError: there are none, or they are of other domains.
        """
        return _mean_weights(path, self.trained)


def with_numbers_of_runs(
    config: settings.Config, domains: DomainSet, overrides: Sequence[str] = ()
) -> tuple[settings.Config, list[str]]:
    """The config with numbers in place of "take them from runs", and a note of which runs.

    Args:
        config: settled.
        domains: the data; f* is of runs on the same bytes.
        overrides: what the user typed, for the command that makes a run that is missing.

    Raises:
        UserError: a run that is needed is not there, not finished, or of other domains.
    """
    method, note = config.method.filled(FinishedRuns(config, domains, overrides))
    return dataclasses.replace(config, method=method), [note] if note else []


def _best_losses(
    config: settings.Config,
    domains: DomainSet,
    trained: Sequence[str],
    overrides: Sequence[str],
) -> tuple[list[float], str]:
    """f*_k: the smallest final training loss of any run of Individual_k on its own domain.

    f*_k = min_W f_k(W) belongs to the domain, and every run bounds it from above, of whatever seed,
    learning rate, momentum and weight decay: all runs of `regret` play the same game.
    """
    folder = Path(config.paths.outputs) / config.data.name / "individual"
    wanted = _protocol(settings.as_dict(config), domains.fingerprint)
    losses: dict[str, list[float]] = {name: [] for name in trained}
    for run in collect(folder).runs if folder.is_dir() else ():
        read = run.environment.get("data_fingerprint")
        same_bytes = read == domains.fingerprint
        if same_bytes and run.domain in losses and _protocol(run.config, read) == wanted:
            losses[run.domain].append(run.loss("train", run.domain))
    missing = [name for name in trained if not losses[name]]
    if missing:
        raise UserError(
            f"method.reference=null: no finished individual run of "
            f"{listed(missing)} with these settings in {folder}; "
            f"make them with `{_individual_command(overrides, missing)}`, or give "
            "method.reference=[…], one number a domain"
        )
    reference = [float(f"{min(losses[name]):.{DIGITS}g}") for name in trained]
    said = listed(
        [
            f"{name} {loss:g} (of {len(losses[name])})"
            for name, loss in zip(trained, reference, strict=True)
        ]
    )
    return reference, f"method.reference: smallest final training loss of individual runs: {said}"


def _protocol(config: Mapping[str, Any], fingerprint: Any) -> Any:
    """What two runs must share for a loss of one to be a yardstick for the other: all but the
    method, when it is measured, and what every method tunes for itself."""
    try:
        identity = settings.identity_of(config, {"data_fingerprint": fingerprint})
    except (KeyError, TypeError, AttributeError):  # config.yaml of another program, or by hand
        return None
    shared = {k: v for k, v in identity.items() if k not in ("method", "evaluation")}
    shared["training"] = {k: v for k, v in shared["training"].items() if k not in ITS_OWN}
    return canonical(shared)


def _individual_command(overrides: Sequence[str], missing: Sequence[str]) -> str:
    own = ("method", "row", "experiment")
    kept = [o for o in overrides if o.lstrip("+").partition("=")[0].partition(".")[0] not in own]
    names = ",".join(map(hydra_value, missing))
    return shlex.join(
        ["robustmd", "train", "-m", "method=individual", f"method.domain={names}", *kept]
    )


def _mean_weights(path: str | None, trained: Sequence[str]) -> tuple[list[float], str]:
    """p̄ = (1/T) Σ_t p_t of the finished runs of one configuration, the mean over their seeds."""
    if path is None:
        raise UserError(
            "method=retrain: needs method.run=FOLDER, whose finished runs' mean weights to take, "
            "or method.weights=[…], one number a domain"
        )
    runs = _runs_of_one_configuration(Path(whole("method.run", path)))
    played = [_weights_of(run, trained) for run in runs]
    weights = [math.fsum(of_domain) / len(runs) for of_domain in zip(*played, strict=True)]
    if not DISTRIBUTION.holds(weights):
        raise UserError(
            f"method.run={path}: its mean weights are {weights}, no distribution over the domains"
        )
    seeds = ", ".join(str(run.seed) for run in runs)
    return weights, (
        f"method.weights: the mean weights of method={runs[0].method} in {path} (seeds {seeds})"
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
