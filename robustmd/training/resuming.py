"""Going on with a run that was cut off, as if nothing had happened."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch

from robustmd import settings
from robustmd.runs import checkpoints
from robustmd.runs.files import Extent
from robustmd.runs.untrusted import Unreadable
from robustmd.training.session import Session

LARGEST = 2.0**53  # of a number in a checkpoint: more is no count, time or loss
ROOM = 2**26  # bytes of a checkpoint for all but the model, its momentum and its average
SAME = ("packages", "cpu", "device", "threads", "robustmd", "git_commit")  # for the same bits


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
    before = directory.environment()
    state.resumed += [*damage, _note(session.learner.iteration, before, environment)]
    if before is None:
        directory.write_environment(environment)
    if directory.config() is None:
        directory.write_config(settings.as_dict(session.plan.config))
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
