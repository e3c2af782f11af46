"""What is there already of a run: all of it, or a checkpoint to go on from, bit for bit."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from robustmd.config import settings
from robustmd.config.identity import canonical
from robustmd.config.plugins import described
from robustmd.errors import UserError, listed
from robustmd.runs import checkpoints, files
from robustmd.runs.files import Extent
from robustmd.runs.reader import judge, status_of
from robustmd.runs.untrusted import Unreadable, read_record
from robustmd.runs.writer import RunDirectory
from robustmd.training.finished_runs import recorded_identity
from robustmd.training.plan import Plan
from robustmd.training.session import Session

ELSE = "force=true trains anew in its place, paths.outputs=FOLDER elsewhere"
LARGEST = 2.0**53  # of a number in a checkpoint: more is no count, time or loss
ROOM = 2**26  # bytes of a checkpoint for all but the model, its momentum and its average
SAME = ("packages", "cpu", "device", "threads", "robustmd", "git_commit")  # for the same bits


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
    if recorded is None:
        raise UserError(
            f"{directory.path}: damaged: config.yaml lacks settings; force=true trains it anew"
        )
    if recorded != canonical(plan.identity) or there.get("seed") != config.seed:
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
    recorded = (plan.directory.record(files.ENVIRONMENT) or {}).get("plugins")
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
    read_record(path / files.ENVIRONMENT)
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


def go_on(session: Session, environment: Mapping[str, Any]) -> bool:
    """Take the run up from its newest checkpoint that can be used; rows written later are cut off.

    What was passed over, and on what it goes on, is added to `session.state.resumed`.

    Args:
        session: as new; is left so where there is no such checkpoint.
        environment: what it runs on now, as environment.json holds it.

    Returns:
        Whether the run goes on; else it has to begin.
    """
    damage: list[str] = []
    directory, state = session.plan.directory, session.state
    if not _take_up_newest(session, damage.append):
        state.resumed = [*damage, "begun anew: no checkpoint could be used"] if damage else []
        return False
    before = directory.record(files.ENVIRONMENT)
    state.resumed += [*damage, _note(session.learner.iteration, before, environment)]
    if before is None:
        directory.write_record(files.ENVIRONMENT, environment)
    if directory.record(files.CONFIG) is None:
        directory.write_record(files.CONFIG, settings.as_dict(session.plan.config))
    return True


def _take_up_newest(session: Session, say: Callable[[str], None]) -> bool:
    path, as_new = session.plan.directory.path, copy.deepcopy(session.state.state_dict())
    parameters = sum(value.nbytes for value in as_new["learner"]["model"].values())
    most = 3 * parameters + ROOM
    for iteration, state in checkpoints.newest_first(path, say, most=most):
        try:
            _take_up(session, iteration, state, as_new)
        except Exception as error:  # what torch raises for a state that does not fit is its own
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            say(f"the checkpoint of iteration {iteration} cannot be used ({words}): passed over")
            session.state.load_state_dict(as_new)
        else:
            checkpoints.drop(path, after=iteration)  # their rows have just been cut off
            return True
    return False


def _take_up(
    session: Session, iteration: int, state: Mapping[str, Any], as_new: Mapping[str, Any]
) -> None:
    if not session.state.belongs_here(state):
        raise Unreadable("it is another run's")
    if not _fits(state, as_new):
        raise Unreadable("it holds values of other types or sizes")
    done, measured = state["learner"]["iteration"], state["learner"]["measured"]
    if done != iteration:
        raise Unreadable(f"it says iteration {done}")
    total = session.iterations
    if iteration > total or not -1 <= measured <= iteration or measured == total:
        raise Unreadable("the run is not that long")
    session.state.load_state_dict(state)
    session.plan.directory.cut_back(
        {name: Extent(*found) for name, found in state["extents"].items()}
    )


def _fits(found: Any, as_new: Any) -> bool:
    """Whether a state read from a file is of the kind of one just made: the same types and shapes,
    and finite where that one is. A key that has gone is missed by whoever needs it."""
    if isinstance(as_new, Mapping):
        sound = isinstance(found, Mapping)
        return sound and all(_fits(found[k], new) for k, new in as_new.items() if k in found)
    if as_new is None:  # no line yet
        return found is None or isinstance(found, str)
    if type(found) is not type(as_new):
        return False
    if isinstance(as_new, list):
        like = as_new or [""] * len(found)  # of lines there may be any number
        return len(found) == len(like) and all(map(_fits, found, like))
    if isinstance(as_new, torch.Tensor):
        return _tensor_fits(found, as_new)
    return isinstance(found, str) or abs(found) < LARGEST


def _tensor_fits(found: torch.Tensor, as_new: torch.Tensor) -> bool:
    """Its precision may be another device's."""
    return (
        found.shape == as_new.shape
        and found.is_floating_point() == as_new.is_floating_point()
        and torch.can_cast(found.dtype, as_new.dtype)
        and bool(found.isfinite().all() or not as_new.isfinite().all())
    )


def _note(iteration: int, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """What is to be said of a run that goes on; `before` and `now` as in environment.json."""
    note = f"resumed after iteration {iteration}"
    if before is None:
        return f"{note}; what it began on is not known, so perhaps not bit-exact"
    changed = [key for key in SAME if before.get(key) != now.get(key)]
    if not changed:
        return note
    return f"{note} on {now.get('device')} where {', '.join(changed)} differ: not bit-exact"
