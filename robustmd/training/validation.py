"""The best measurement so far on the validation sets: which model is kept, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from robustmd.config import settings
from robustmd.metrics import BestBy
from robustmd.registry import METRICS
from robustmd.training.measurement import Measure

UNKNOWN = 2.0**52  # in place of a value that is not finite: worse than any


class Validation:
    """`evaluation.keep` and `training.patience`, by what `evaluation.best_by` names.

    iteration: after which the best measurement was made, the earliest of equals; 0: none yet.
    value: of that measurement. since: measurements made after it. model: its weights, on the host;
    none where they are not kept.
    """

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

    def _value(self, measures: Mapping[str, Measure]) -> float:
        values = [m.as_dict()[self.by.metric] for m in measures.values()]
        return min(float(self.by.cost(values, METRICS[self.by.metric].better)), UNKNOWN)

    def _is_better(self, cost: float) -> bool:
        return self.iteration == 0 or cost < self.value

    def state_dict(self) -> dict[str, Any]:
        found = {"iteration": self.iteration, "value": self.value, "since": self.since}
        return {**found, "model": self.model}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.iteration, self.value = state["iteration"], state["value"]
        self.since = state["since"]
        self.model = {name: state["model"][name] for name in self.model}


def _copied(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
