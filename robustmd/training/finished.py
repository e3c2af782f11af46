"""Is the run that these settings ask for there already, finished and sound?"""

from __future__ import annotations

import os

from robustmd.config.plugins import described
from robustmd.errors import UserError, listed
from robustmd.runs import checkpoints, files
from robustmd.runs.identity import canonical
from robustmd.runs.reader import judge, status_of
from robustmd.runs.untrusted import Unreadable, read_json
from robustmd.runs.writer import RunDirectory
from robustmd.training.other_runs import recorded_identity
from robustmd.training.plan import Plan

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
    there, environment = directory.config(), directory.environment()
    if there is None or environment is None:
        return False
    recorded = recorded_identity(there, plan.read)  # as if it had read the same, see below
    if recorded is None:
        raise UserError(
            f"{directory.path}: damaged: config.yaml lacks settings; force=true trains it anew"
        )
    if recorded != canonical(plan.identity):
        raise UserError(
            f"{directory.path}: holds a run of other settings (see its config.yaml); {ELSE}"
        )
    for key, did, name in (
        ("data_fingerprint", "read other data", "fingerprint"),
        ("weights_sha256", "began with other weights", "sha256"),
    ):
        found, now = environment.get(key), plan.read[key]
        if found != now:
            raise UserError(
                f"{directory.path}: that run {did} ({name} {str(found)[:12]}, now "
                f"{str(now)[:12]}); {ELSE}"
            )
    changed = changed_code(plan)
    if changed and not has_finished and config.resume:
        raise UserError(
            f"{directory.path}: that run began with other code in {listed(changed)}; "
            "resume=false begins anew, paths.outputs=FOLDER elsewhere"
        )
    if has_finished:
        checkpoints.drop(directory.path)  # a run killed at its very end has left them
    return has_finished


def changed_code(plan: Plan) -> list[str]:
    """The user's own modules whose file is not the one that the run there began with."""
    recorded = (plan.directory.environment() or {}).get("plugins")
    plugins = recorded if isinstance(recorded, list) else []
    before = {p.get("module"): p.get("sha256") for p in plugins if isinstance(p, dict)}
    now = described(plan.config)
    return [str(p["module"]) for p in now if before.get(p["module"], p["sha256"]) != p["sha256"]]


def _check_whole(directory: RunDirectory) -> None:
    """Raises `Unreadable` or `UserError` for the first of a finished run's files that is damaged
    or has gone. Runs from before checksums were recorded are held to being readable."""
    path = directory.path
    run, problems = judge(path, path)
    if run is None:
        raise Unreadable(problems[0].reason)
    read_json(path / files.ENVIRONMENT)
    recorded, evaluation = run.summary.get("sha256", {}), run.config.get("evaluation")
    if not isinstance(recorded, dict):
        raise Unreadable("summary.json names no sha256 of each file")
    predictions = isinstance(evaluation, dict) and evaluation.get("predictions") is True
    try:
        found = directory.checksums(predictions=predictions)
    except OSError as error:
        name = os.path.relpath(error.filename, path)
        raise Unreadable(f"{name}: {error.strerror}") from None
    for name, digest in found.items():
        if recorded.get(name, digest) != digest:
            raise Unreadable(f"{name} is not what it was when the run finished")
    if not recorded:
        checkpoints.load_final_model(path)
