"""Which directory a run has: by its settings and by what it read, wherever that lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robustmd import settings
from robustmd.errors import UserError
from robustmd.runs.identity import canonical, run_folder
from robustmd.runs.writer import RunDirectory


def directory_of(config: settings.Config, read: Mapping[str, Any]) -> RunDirectory:
    """The directory of the run of these settings on these files, whether it is there or not.

    Args:
        config: settled.
        read: what was read, as environment.json holds it: data_fingerprint, weights_sha256.

    Where the settings name files, a run is also found under the name that it had when their paths
    were part of it.

    Raises:
        UserError: without force=true, if a run of the same settings read other bytes from there.
    """
    plain = settings.as_dict(config)
    wanted, by_place = settings.identity_of(plain, read), settings.number_changing(plain)
    further = bool(config.evaluation.metrics)
    path = run_folder(Path(config.paths.outputs), wanted, config.seed)
    named = RunDirectory(path, further=further)
    if wanted == by_place or named.path.is_dir():
        return named
    other = ""
    for path in sorted(named.path.parents[1].glob(f"*/{named.path.name}")):
        there = RunDirectory(path, further=further)
        found, its_read = there.config(), there.environment()
        if found is None or its_read is None:
            continue
        if _identity(found, its_read) == canonical(wanted):
            return there
        if _identity(found, {}) == canonical(by_place):
            same_data = its_read.get("data_fingerprint") == read["data_fingerprint"]
            what = "began with other weights" if same_data else "read other data"
            other = f"{path}: that run {what} from the same place"
    if other and not config.force:
        raise UserError(
            f"{other}; force=true trains on what is there now beside it, "
            "paths.outputs=FOLDER elsewhere"
        )
    return named


def _identity(config: Mapping[str, Any], read: Mapping[str, Any]) -> Any:
    """A run's that is there; None for what no run of ours wrote."""
    try:
        return canonical(settings.identity_of(config, read))
    except (KeyError, TypeError, AttributeError):
        return None
