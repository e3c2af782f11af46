"""All that changes while a run is under way, and the best measurement so far by validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from robustmd.config import settings
from robustmd.metrics import BestBy
from robustmd.registry import METRICS
from robustmd.training.history import Clock, Kept, Row, WeightsWatch
from robustmd.training.learner import Learner
from robustmd.training.measurement import Measure
from robustmd.training.plan import Plan

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted
UNKNOWN = 2.0**52  # in place of a value that is not finite: worse than any


class RunState(Kept):
    """With the rows already written, all that a run needs to go on as if nothing had happened.

    learner: model, optimizer, adversary. watch: of its weights. best: by validation, so far. clock:
    the seconds spent.
    weight_sums: Σ_t p_t over the iterations counted. marginal_error: the largest that Sinkhorn's
    sweeps left, for OT. resumed: a note for every time that it was taken up again.
    """

    kept = ("marginal_error", "weight_sums", "resumed")

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
            **{name: part.state_dict() for name, part in self._parts.items()},
            **super().state_dict(),
            "random": {name: get() for name, (get, _) in _generators(self._device).items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; a run that goes on elsewhere leaves its old device's
        random generator out. Raises whatever fits the fault where the state does not."""
        super().load_state_dict(state)
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        for name, (_, put) in _generators(self._device).items():
            if name in state["random"] or name == "cpu":
                put(state["random"][name])

    @property
    def _parts(self) -> dict[str, Learner | Kept | Clock]:
        best = {"best": self.best} if self.best.is_watched else {}
        return {"learner": self.learner, "watch": self.watch, "clock": self.clock, **best}


def _generators(device: torch.device) -> dict[str, tuple[Callable[[], Any], Callable[[Any], None]]]:
    """How to get and set the state of torch's own generators, on the host and on the device."""
    found: dict[str, tuple[Any, Any]] = {"cpu": (torch.get_rng_state, torch.set_rng_state)}
    if device.type in ("cuda", "mps"):
        module, there = (torch.cuda, [device]) if device.type == "cuda" else (torch.mps, [])
        put = partial(module.set_rng_state, **({"device": device} if there else {}))
        found[device.type] = (partial(module.get_rng_state, *there), put)
    return found


class Validation(Kept):
    """`evaluation.keep` and `training.patience`, by what `evaluation.best_by` names.

    iteration: after which the best measurement was made, the earliest of equals; 0: none yet.
    value: of that measurement. since: measurements made after it. model: its weights, on the host;
    none where they are not kept.
    """

    kept = ("iteration", "value", "since", "model")

    def __init__(self, config: settings.Config, model: nn.Module) -> None:
        self.by, self.patience = BestBy.of(config.evaluation.best_by), config.training.patience
        self.keeps = config.evaluation.keep == "best_val"
        self.iteration, self.value, self.since = 0, 0.0, 0
        self.model = _copied(model) if self.keeps else {}

    @property
    def is_watched(self) -> bool:
        return self.keeps or self.patience is not None

    def ends_with(self, iteration: int, measures: Mapping[str, Measure]) -> bool:
        """Whether patience is over with this measurement of the validation sets."""
        waited = iteration > 0 and not self._is_better(self._value(measures))
        return waited and self.patience is not None and self.since + 1 >= self.patience

    def see(self, iteration: int, measures: Mapping[str, Measure], model: nn.Module) -> None:
        """Take in a measurement; that of the untrained model does not count."""
        if iteration == 0:
            return
        value = self._value(measures)
        if not self._is_better(value):
            self.since += 1
            return
        self.iteration, self.value, self.since = iteration, value, 0
        if self.keeps:
            self.model = _copied(model)

    def summary(self) -> dict[str, Any]:
        """For summary.json: which measurement is the best, by what, and its value."""
        smaller = METRICS[self.by.metric].better == "smaller"
        value = self.value if smaller else -self.value
        return {"iteration": self.iteration, "by": str(self.by), "value": value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        model = {name: state["model"][name] for name in self.model}  # all of it
        super().load_state_dict({**state, "model": model})

    def _value(self, measures: Mapping[str, Measure]) -> float:
        values = [m.as_dict()[self.by.metric] for m in measures.values()]
        return min(float(self.by.cost(values, METRICS[self.by.metric].better)), UNKNOWN)

    def _is_better(self, cost: float) -> bool:
        return self.iteration == 0 or cost < self.value


def _copied(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
