"""`extend=true`: a run goes on from the end of a shorter one, as if that had been as long."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch

from robustmd.config.identity import canonical
from robustmd.errors import UserError
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
from robustmd.training.state import RunState, check, most_bytes, on_what

ANEW = "leave out extend=true to train anew"


def extend(plan: Plan, state: RunState, environment: Mapping[str, Any]) -> None:
    """Take up the end of the longest finished run that has fewer iterations and else the same
    settings, seed and data: its state and its rows; a note of it is added to `state.resumed`.

    Args:
        plan: what is to be trained; its directory has just begun.
        state: as new; is left so where there is no such run.
        environment: what it runs on now, as environment.json holds it.

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
        rows = _take_up(directory, short, state)
    except Exception as error:  # what torch raises for a state that does not fit is its own
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{where}: cannot be gone on from ({words}); {ANEW}") from None
    for name, content in rows.items():
        plan.directory.write(name, content)
    said = f"goes on from the end of the run of {short.iterations} iterations"
    state.resumed = [on_what(said, directory.record(files.ENVIRONMENT), environment)]


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
    twice = plan.of_length(2 * plan.iterations).config.training
    ours, longer = schedule(training), schedule(twice)
    if any(ours(t) != longer(t) for t in range(plan.iterations + 1)):
        return f"training.schedule={training.schedule}"
    facts = _Noticing(MethodFacts(len(plan.trained), plan.iterations, plan.sizes))
    with torch.random.fork_rng(devices=[]):  # a look that changes no later draw
        build_adversary(method, cast(MethodFacts, facts))
    known = "; a number as method.c does not" if hasattr(method, "c") else ""
    return f"the step of method={method.name} (as it is set{known})" if facts.asked else ""


def _take_up(directory: RunDirectory, short: Plan, state: RunState) -> dict[str, bytes]:
    """Load the state of the end. Returns the rows up to there, {file: content}, as a longer run has
    them: without the weights that are there only because they were the last."""
    end, as_new = short.iterations, copy.deepcopy(state.state_dict())
    held = dict(checkpoints.newest_first(directory.path, most=most_bytes(as_new)))
    if end not in held:
        raise Unreadable("it kept no state of its end, as checkpoint.end=true does")
    check(held[end], as_new, end, short)
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
