"""How a run goes on: from its newest checkpoint that can be used, or, with `extend=true`, from the
end of a shorter run, as if that had been as long."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from robustmd.config.identity import canonical, flattened
from robustmd.errors import Say, UserError, first_line
from robustmd.methods import build_adversary
from robustmd.registry import MethodFacts
from robustmd.runs import checkpoints, files
from robustmd.runs.files import Extent
from robustmd.runs.reader import status_of
from robustmd.runs.untrusted import Unreadable
from robustmd.runs.writer import RunDirectory
from robustmd.training.finished_runs import recorded_identity
from robustmd.training.optimizers import schedule
from robustmd.training.plan import Plan
from robustmd.training.state import RunState

LARGEST = 2.0**53  # of a number in a checkpoint: more is no count, time or loss
ROOM = 2**26  # bytes of a checkpoint for all but the tensors of the learner
# For the same bits.
SAME = ("packages", "cpu", "device", "threads", "processes", "robustmd", "git_commit")
ANEW = "leave out extend=true to train anew"


def go_on(plan: Plan, state: RunState, environment: Mapping[str, Any]) -> bool:
    """Take the run up from its newest checkpoint that can be used; rows written later are cut off.

    What was passed over, and on what it goes on, is added to `state.resumed`; `state` is left as
    new where there is no such checkpoint. `environment`: what it runs on now.

    Returns:
        Whether the run goes on; else it has to begin.
    """
    damage: list[str] = []
    directory = plan.directory
    if not _take_up_newest(plan, state, damage.append):
        state.resumed = [*damage, "begun anew: no checkpoint could be used"] if damage else []
        return False
    before = directory.record(files.ENVIRONMENT)
    said = _on_what(f"resumed after iteration {state.learner.iteration}", before, environment)
    state.resumed += [*damage, said]
    if before is None:
        directory.write_record(files.ENVIRONMENT, environment)
    if directory.record(files.CONFIG) is None:
        directory.write_record(files.CONFIG, plan.plain)
    return True


def _take_up_newest(plan: Plan, state: RunState, say: Say) -> bool:
    path, as_new = plan.directory.path, copy.deepcopy(state.state_dict())
    for iteration, found in checkpoints.newest_first(path, say, most=_most_bytes(as_new)):
        try:
            _check(found, as_new, iteration, plan)
            state.load_state_dict(found)
            extents = {name: Extent(*extent) for name, extent in found["extents"].items()}
            plan.directory.cut_back(extents)
        except Exception as error:  # what torch raises for a state that does not fit is its own
            words = first_line(error)
            say(f"the checkpoint of iteration {iteration} cannot be used ({words}): passed over")
            state.load_state_dict(as_new)
        else:
            checkpoints.drop(path, after=iteration)  # their rows have just been cut off
            return True
    return False


def extend(plan: Plan, state: RunState, environment: Mapping[str, Any]) -> None:
    """Take up the end of the longest finished run that has fewer iterations and else the same
    settings, seed and data: its state and its rows. A note is added to `state.resumed`.

    Raises:
        UserError: the first iterations of a longer run would be others, or the state of the end is
            not there, or damaged.
    """
    found = _longest(plan)
    if found is None:
        state.resumed.append("extend=true: no finished run has fewer iterations; begun anew")
        return
    directory, short = found
    where = f"extend=true: {directory.path}"
    if (directory.record(files.SUMMARY) or {}).get("stopped_early"):
        raise UserError(
            f"{where}: stopped early by training.patience, so that more iterations change nothing"
        )
    if what := by_length(plan):
        raise UserError(
            f"extend=true: {what} depends on training.iterations, so that the first "
            f"{short.iterations} iterations of a longer run are others; {ANEW}"
        )
    try:
        rows = _take_up_end(directory, short, state)
    except Exception as error:  # what torch raises for a state that does not fit is its own
        raise UserError(f"{where}: cannot be gone on from ({first_line(error)}); {ANEW}") from None
    for name, content in rows.items():
        plan.directory.write(name, content)
    said = f"goes on from the end of the run of {short.iterations} iterations"
    state.resumed = [_on_what(said, directory.record(files.ENVIRONMENT), environment)]


def _longest(plan: Plan) -> tuple[RunDirectory, Plan] | None:
    """The longest shorter run, and its plan."""
    place, best = plan.directory.path, None
    for path in place.parents[1].glob(f"*/{place.name}"):
        directory = RunDirectory(path, further=bool(plan.config.evaluation.metrics))
        config, read = (directory.record(name) or {} for name in (files.CONFIG, files.ENVIRONMENT))
        training = config.get("training")
        iterations = training.get("iterations") if isinstance(training, dict) else None
        if not isinstance(iterations, int) or not 0 < iterations < plan.iterations:
            continue
        short = plan.of_length(iterations)
        is_same = recorded_identity(config, read) == canonical(short.identity)
        is_longer = best is None or iterations > best[1].iterations
        if is_same and is_longer and _is_finished(path):
            best = directory, short
    return best


def _is_finished(path: Path) -> bool:
    try:
        return status_of(path) == "finished"
    except Unreadable:
        return False


class _Noticing:
    """A method's facts that notice whether T is asked for."""

    def __init__(self, facts: MethodFacts) -> None:
        self._facts, self.asked = facts, False

    def __getattr__(self, name: str) -> Any:
        self.asked |= name == "iterations"
        return getattr(self._facts, name)


def by_length(plan: Plan) -> str:
    """What makes iterations depend on how many there are, T; "" where nothing does."""
    training, method = plan.config.training, plan.config.method
    twice = replace(training, iterations=2 * plan.iterations)
    ours, longer = schedule(training), schedule(twice)
    if any(ours(t) != longer(t) for t in range(plan.iterations + 1)):
        return f"training.schedule={training.schedule}"
    facts = _Noticing(MethodFacts(len(plan.trained), plan.iterations, plan.sizes))
    with torch.random.fork_rng(devices=[]):  # a look that changes no later draw
        build_adversary(method, cast(MethodFacts, facts))
    known = "; a number as method.c does not" if hasattr(method, "c") else ""
    return f"the step of method={method.name} (as it is set{known})" if facts.asked else ""


def _take_up_end(directory: RunDirectory, short: Plan, state: RunState) -> dict[str, bytes]:
    """Load the state of the end. Returns the rows up to there, {file: content}, as a longer run has
    them: without the weights that are there only because they were the last."""
    end, as_new = short.iterations, copy.deepcopy(state.state_dict())
    held = dict(checkpoints.newest_first(directory.path, most=_most_bytes(as_new)))
    if end not in held:
        raise Unreadable("it kept no state of its end, as checkpoint.end=true does")
    _check(held[end], as_new, end, short)
    rows = {}
    for name in directory.growing:
        extent = Extent(*held[end]["extents"][name])
        if Extent.of(directory.path / name, extent.length) != extent:
            raise Unreadable(f"{name} is not what it was then")
        with files.reading(directory.path / name) as stream:
            rows[name] = stream.read(extent.length)
    if end > 1 and end % short.config.logging.every:
        lines = rows[files.WEIGHTS].splitlines(keepends=True)
        kept = (line for line in lines if not line.startswith(f"{end},".encode()))
        rows[files.WEIGHTS] = b"".join(kept)
    state.load_state_dict(held[end])
    return rows


# --- what a checkpoint may hold ------------------------------------------------------------------


def _most_bytes(as_new: Any) -> int:
    """Of a checkpoint that holds what this state does."""
    values = (value for _, value in flattened(as_new, ""))
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor)) + ROOM


def _check(found: Mapping[str, Any], as_new: Any, iteration: int, plan: Plan) -> None:
    """Raises `Unreadable` for a checkpoint that is not of this run, on these bytes, at that
    iteration."""
    if found["belongs_to"] != plan.checkpoint_name:
        raise Unreadable("it is another run's")
    if not _fits(found, as_new):
        raise Unreadable("it holds values of other types or sizes")
    done, measured = found["learner"]["iteration"], found["learner"]["measured"]
    if done != iteration:
        raise Unreadable(f"it says iteration {done}")
    total = plan.iterations
    if iteration > total or not -1 <= measured <= iteration or measured == total:
        raise Unreadable("the run is not that long")


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
    if isinstance(as_new, torch.Tensor):  # its precision may be another device's
        same_kind = found.is_floating_point() == as_new.is_floating_point()
        castable = same_kind and torch.can_cast(found.dtype, as_new.dtype)
        finite = bool(found.isfinite().all() or not as_new.isfinite().all())
        return found.shape == as_new.shape and castable and finite
    return isinstance(found, str) or abs(found) < LARGEST


def _on_what(note: str, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """What is to be said of a run that goes on; `before` and `now` as in environment.json."""
    if before is None:
        return f"{note}; what it began on is not known, so perhaps not bit-exact"
    changed = [key for key in SAME if before.get(key) != now.get(key)]
    if not changed:
        return note
    return f"{note} on {now.get('device')} where {', '.join(changed)} differ: not bit-exact"
