"""Is the run that these settings ask for there already, finished and sound?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustmd import settings
from robustmd.backbones.pretrained import WeightsFile
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError
from robustmd.runs import checkpoints
from robustmd.runs.identity import canonical
from robustmd.runs.reader import collect
from robustmd.runs.writer import RunDirectory

SAME_FILES = {"data_fingerprint": "any", "weights_sha256": "any"}  # they are compared by themselves
ELSE = "force=true trains anew in its place, paths.outputs=FOLDER elsewhere"


def is_finished(
    directory: RunDirectory,
    config: settings.Config,
    domains: DomainSet,
    weights: WeightsFile | None,
) -> bool:
    """Whether `directory` holds the finished run of these settings, data and initial weights.

    Raises:
        UserError: it holds a run of others, or one that was damaged after it had finished.
    """
    there, environment = directory.config(), directory.environment()
    if config.force or there is None or environment is None:
        return False
    if not _same_settings(there, config):
        raise UserError(
            f"{directory.path}: holds a run of other settings (see its config.yaml); {ELSE}"
        )
    found = environment.get("data_fingerprint")
    if found != domains.fingerprint:
        raise UserError(
            f"{directory.path}: that run read other data (fingerprint {str(found)[:12]}, now "
            f"{domains.fingerprint[:12]}); {ELSE}"
        )
    begun, now = environment.get("weights_sha256"), weights.sha256 if weights else None
    if begun != now:
        raise UserError(
            f"{directory.path}: that run began with other weights (sha256 {str(begun)[:12]}, now "
            f"{str(now)[:12]}); {ELSE}"
        )
    if (directory.summary() or {}).get("status") != "finished":
        return False
    damage = [p.reason for p in collect(directory.path).problems if p.scope == "run"]
    if damage:
        raise UserError(
            f"{directory.path}: finished, but damaged since: {damage[0]}; force=true trains it anew"
        )
    checkpoints.drop(directory.path)  # a run killed at its very end has left them
    return True


def _same_settings(there: Mapping[str, Any], config: settings.Config) -> bool:
    try:
        found = settings.identity_of(there, SAME_FILES)
    except (KeyError, TypeError, AttributeError):  # not what a run of ours wrote
        return False
    wanted = settings.identity_of(settings.as_dict(config), SAME_FILES)
    return bool(canonical(found) == canonical(wanted))
