"""Going on with a run that was cut off, as if nothing had happened."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from robustmd import settings
from robustmd.runs import checkpoints
from robustmd.runs.files import Extent
from robustmd.runs.untrusted import Unreadable
from robustmd.training.session import Session

LARGEST = 2.0**53  # of a number in a checkpoint: more is no count, time or loss
SAME = ("packages", "cpu", "device", "threads", "robustmd", "git_commit")  # for the same bits


def go_on(session: Session, environment: Mapping[str, Any]) -> bool:
    """Take the run up from its newest checkpoint that can be used; rows written later are cut off.

    What was passed over, and on what it goes on, is added to `session.resumed`.

    Args:
        session: as new; is left so where there is no such checkpoint.
        environment: what it runs on now, as environment.json holds it.

    Returns:
        Whether the run goes on; else it has to begin.
    """
    damage: list[str] = []
    directory = session.directory
    if not _take_up_newest(session, damage.append):
        session.resumed = [*damage, "begun anew: no checkpoint could be used"] if damage else []
        return False
    before = directory.environment()
    session.resumed += damage
    session.resumed.append(_note(session.learner.iteration, before, environment))
    if before is None:
        directory.write_environment(environment)
    if directory.config() is None:
        directory.write_config(settings.as_dict(session.config))
    return True


def _take_up_newest(session: Session, say: Callable[[str], None]) -> bool:
    as_new = copy.deepcopy(session.state())
    for iteration, state in checkpoints.newest_first(session.directory.path, say):
        try:
            _take_up(session, iteration, state)
        except Exception as error:  # what torch raises for a state that does not fit is its own
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            say(f"the checkpoint of iteration {iteration} cannot be used ({words}): passed over")
            session.load_state(as_new)
        else:
            return True
    return False


def _take_up(session: Session, iteration: int, state: Mapping[str, Any]) -> None:
    if state["belongs_to"] not in (session.belongs_to, session.belonged_to):
        raise Unreadable("it is another run's")
    if state["learner"]["iteration"] != iteration:
        raise Unreadable(f"it says iteration {state['learner']['iteration']}")
    if iteration > session.config.training.iterations:
        raise Unreadable("the run is not that long")
    if not _fits(state, session.state()):
        raise Unreadable("it holds values of other types")
    session.load_state(state)
    session.directory.cut_back({name: Extent(*found) for name, found in state["extents"].items()})


def _fits(found: Any, as_new: Any) -> bool:
    """Whether a state read from a file is of the kind of one just made: numbers stand where numbers
    are, lines where there are none yet. Tensors are compared by whoever takes them."""
    if isinstance(as_new, Mapping):
        sound = isinstance(found, Mapping)
        return sound and all(_fits(found[k], new) for k, new in as_new.items() if k in found)
    if isinstance(as_new, list):
        if not as_new:
            return isinstance(found, list) and all(isinstance(line, str) for line in found)
        sound = isinstance(found, list) and len(found) == len(as_new)
        return sound and all(_fits(*pair) for pair in zip(found, as_new, strict=True))
    if as_new is None:
        return found is None or isinstance(found, str | int | float)
    if isinstance(as_new, int | float):
        return isinstance(found, int | float) and abs(found) < LARGEST
    return isinstance(found, type(as_new))


def _note(iteration: int, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """What is to be said of a run that goes on; `before` and `now` as in environment.json."""
    note = f"resumed after iteration {iteration}"
    if before is None:
        return f"{note}; what it began on is not known, so perhaps not bit-exact"
    changed = [key for key in SAME if before.get(key) != now.get(key)]
    if not changed:
        return note
    return f"{note} on {now.get('device')} where {', '.join(changed)} differ: not bit-exact"
