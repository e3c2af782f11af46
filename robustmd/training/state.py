"""All that changes while a run is under way: what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustmd.training.clock import Clock
from robustmd.training.history import Row
from robustmd.training.learner import Learner
from robustmd.training.plan import Plan
from robustmd.training.seeds import generator_states, set_generator_states
from robustmd.training.watch import WeightsWatch

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted


class RunState:
    """With the rows already written, all that a run needs to go on as if nothing had happened.

    learner: model, optimizer, adversary. watch: of its weights. clock: the seconds spent.
    weight_sums: Σ_t p_t over the iterations that `saw` was told of. marginal_error: the largest
    that Sinkhorn's sweeps left, for OT. resumed: a note for every time that it was taken up again.
    """

    def __init__(self, plan: Plan, learner: Learner) -> None:
        self._names, self._device = plan.checkpoint_names, plan.device
        self.learner = learner
        self.watch = WeightsWatch(learner.adversary, plan.trained, plan.iterations)
        self._is_watched = learner.adversary.learns and not learner.adversary.signed
        self.clock = Clock(plan.device)
        self.weight_sums = [0.0] * len(plan.trained)
        self.marginal_error = 0.0
        self.resumed: list[str] = []

    def saw(self, rows: Sequence[Row]) -> None:
        """The next iterations' weights and losses."""
        for row in rows:
            if self._is_watched:
                self.watch.see(row)
            self.weight_sums = [s + p for s, p in zip(self.weight_sums, row.weights, strict=True)]

    def note_marginal_error(self) -> None:
        """Read what the sweeps have left, where the rule has any."""
        regularizer = getattr(self.learner.adversary, "regularizer", None)
        error = getattr(regularizer, "marginal_error", None)
        if error is not None:
            self.marginal_error = max(self.marginal_error, float(error))

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

    def belongs_here(self, state: Mapping[str, Any]) -> bool:
        """Is it of this run, on these bytes?"""
        return state["belongs_to"] in self._names

    def state_dict(self) -> dict[str, Any]:
        return {
            "belongs_to": self._names[0],
            "learner": self.learner.state_dict(),
            "watch": self.watch.state_dict(),
            "clock": self.clock.state_dict(),
            "marginal_error": self.marginal_error,
            "weight_sums": list(self.weight_sums),
            "random": generator_states(self._device),
            "resumed": list(self.resumed),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave. Raises whatever fits the fault where it does not."""
        self.learner.load_state_dict(state["learner"])
        self.watch.load_state_dict(state["watch"])
        self.clock.load_state_dict(state["clock"])
        self.marginal_error = state["marginal_error"]
        self.weight_sums = list(state["weight_sums"])
        self.resumed = list(state["resumed"])
        set_generator_states(state["random"], self._device)
