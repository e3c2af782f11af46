"""All that changes while a run is under way, and how another process goes on from there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from robustmd.config import settings
from robustmd.runs import checkpoints, files
from robustmd.runs.files import Extent
from robustmd.runs.untrusted import Unreadable
from robustmd.training.history import Clock, Row, WeightsWatch
from robustmd.training.learner import Learner
from robustmd.training.plan import Plan
from robustmd.training.validation import Validation

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted
LARGEST = 2.0**53  # of a number in a checkpoint: more is no count, time or loss
ROOM = 2**26  # bytes of a checkpoint for all but the tensors of the learner
# For the same bits.
SAME = ("packages", "cpu", "device", "threads", "processes", "robustmd", "git_commit")


class RunState:
    """With the rows already written, all that a run needs to go on as if nothing had happened.

    learner: model, optimizer, adversary. watch: of its weights. best: by validation, so far. clock:
    the seconds spent.
    weight_sums: Σ_t p_t over the iterations counted. marginal_error: the largest that Sinkhorn's
    sweeps left, for OT. resumed: a note for every time that it was taken up again.
    """

    def __init__(self, plan: Plan, learner: Learner) -> None:
        self._name, self._device = plan.checkpoint_name, plan.device
        self.learner = learner
        self.watch = WeightsWatch(learner.adversary, plan.trained, plan.iterations)
        self.best = Validation(plan.config, learner.model)
        self.clock = Clock(plan.device)
        self.weight_sums = [0.0] * len(plan.trained)
        self.marginal_error = 0.0
        self.resumed: list[str] = []

    def count(self, rows: Sequence[Row]) -> None:
        """Take in the weights and losses of the next iterations."""
        for row in rows:
            self.watch.see(row)
            self.weight_sums = [s + p for s, p in zip(self.weight_sums, row.weights, strict=True)]

    def note_marginal_error(self) -> None:
        """Read what the sweeps have left, where the rule has any."""
        regularizer = getattr(self.learner.adversary, "regularizer", None)
        error = float(getattr(regularizer, "marginal_error", 0.0))
        self.marginal_error = max(self.marginal_error, error)

    def warnings(self) -> dict[str, str]:
        """What a user should be told of the training so far, by kind."""
        found = {"weights": self.watch.warning} if self.watch.warning else {}
        if self.marginal_error > LARGEST_MARGINAL_ERROR:
            found["marginal error"] = (
                f"Sinkhorn's sweeps left a marginal error of up to {self.marginal_error:.1e}: "
                "more method.sweeps, or a smaller method.nu, make the direction exact"
            )
        if skipped := int(self.learner.adversary.skipped):
            found["skipped"] = f"{skipped} updates of the weights skipped: a loss was not finite"
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "belongs_to": self._name,
            "learner": self.learner.state_dict(),
            "watch": self.watch.state_dict(),
            "clock": self.clock.state_dict(),
            "marginal_error": self.marginal_error,
            "weight_sums": list(self.weight_sums),
            "random": {name: get() for name, (get, _) in _generators(self._device).items()},
            "resumed": list(self.resumed),
            **({"best": self.best.state_dict()} if self.best.is_watched else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; a run that goes on elsewhere leaves its old device's
        random generator out. Raises whatever fits the fault where the state does not."""
        self.learner.load_state_dict(state["learner"])
        self.watch.load_state_dict(state["watch"])
        self.clock.load_state_dict(state["clock"])
        if self.best.is_watched:
            self.best.load_state_dict(state["best"])
        self.marginal_error = state["marginal_error"]
        self.weight_sums = list(state["weight_sums"])
        self.resumed = list(state["resumed"])
        for name, (_, put) in _generators(self._device).items():
            if name in state["random"] or name == "cpu":
                put(state["random"][name])


def _generators(device: torch.device) -> dict[str, tuple[Callable[[], Any], Callable[[Any], None]]]:
    """How to get and set the state of torch's own generators, on the host and on the device."""
    found: dict[str, tuple[Any, Any]] = {"cpu": (torch.get_rng_state, torch.set_rng_state)}
    if device.type in ("cuda", "mps"):
        module, there = (torch.cuda, [device]) if device.type == "cuda" else (torch.mps, [])
        put = partial(module.set_rng_state, **({"device": device} if there else {}))
        found[device.type] = (partial(module.get_rng_state, *there), put)
    return found


def go_on(plan: Plan, state: RunState, environment: Mapping[str, Any]) -> bool:
    """Take the run up from its newest checkpoint that can be used; rows written later are cut off.

    What was passed over, and on what it goes on, is added to `state.resumed`.

    Args:
        plan: what is to be trained.
        state: as new; is left so where there is no such checkpoint.
        environment: what it runs on now, as environment.json holds it.

    Returns:
        Whether the run goes on; else it has to begin.
    """
    damage: list[str] = []
    directory = plan.directory
    if not _take_up_newest(plan, state, damage.append):
        state.resumed = [*damage, "begun anew: no checkpoint could be used"] if damage else []
        return False
    before = directory.record(files.ENVIRONMENT)
    said = f"resumed after iteration {state.learner.iteration}"
    state.resumed += [*damage, on_what(said, before, environment)]
    if before is None:
        directory.write_record(files.ENVIRONMENT, environment)
    if directory.record(files.CONFIG) is None:
        directory.write_record(files.CONFIG, settings.as_dict(plan.config))
    return True


def _take_up_newest(plan: Plan, state: RunState, say: Callable[[str], None]) -> bool:
    path, as_new = plan.directory.path, copy.deepcopy(state.state_dict())
    for iteration, found in checkpoints.newest_first(path, say, most=most_bytes(as_new)):
        try:
            check(found, as_new, iteration, plan)
            state.load_state_dict(found)
            extents = {name: Extent(*extent) for name, extent in found["extents"].items()}
            plan.directory.cut_back(extents)
        except Exception as error:  # what torch raises for a state that does not fit is its own
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            say(f"the checkpoint of iteration {iteration} cannot be used ({words}): passed over")
            state.load_state_dict(as_new)
        else:
            checkpoints.drop(path, after=iteration)  # their rows have just been cut off
            return True
    return False


def most_bytes(as_new: Any) -> int:
    """Of a checkpoint that holds what this state does."""
    return sum(tensor.nbytes for tensor in _tensors(as_new)) + ROOM


def _tensors(state: Any) -> list[torch.Tensor]:
    """All tensors in nested mappings."""
    if isinstance(state, Mapping):
        return [tensor for inner in state.values() for tensor in _tensors(inner)]
    return [state] if isinstance(state, torch.Tensor) else []


def check(found: Mapping[str, Any], as_new: Any, iteration: int, plan: Plan) -> None:
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


def on_what(note: str, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """What is to be said of a run that goes on; `before` and `now` as in environment.json."""
    if before is None:
        return f"{note}; what it began on is not known, so perhaps not bit-exact"
    changed = [key for key in SAME if before.get(key) != now.get(key)]
    if not changed:
        return note
    return f"{note} on {now.get('device')} where {', '.join(changed)} differ: not bit-exact"
