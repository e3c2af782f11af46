"""All that changes while a run is under way: what a checkpoint holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from robustmd.adversary import Regularizer, lam_keeping_all_in_play
from robustmd.adversary.base import Adversary
from robustmd.training.history import Clock, Row
from robustmd.training.learner import Learner
from robustmd.training.plan import Plan

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted
FEW = 1.05  # effective number of domains exp(H(p)) below which p is on one domain
LONG = 0.1  # of the run's iterations: a stretch worth a warning


class RunState:
    """With the rows already written, all that a run needs to go on as if nothing had happened.

    learner: model, optimizer, adversary. watch: of its weights. clock: the seconds spent.
    weight_sums: Σ_t p_t over the iterations counted. marginal_error: the largest
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

    def count(self, rows: Sequence[Row]) -> None:
        """Take in the weights and losses of the next iterations."""
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


class WeightsWatch:
    """Warns once when exp(H(p)) < 1.05 for a tenth of the run on end, with the same domain on top,
    and says which λ would help.

    Args:
        adversary: the rule; for its regularizer and prior.
        domains: the K names, in order.
        iterations: T.
    """

    def __init__(self, adversary: Adversary, domains: tuple[str, ...], iterations: int) -> None:
        self._regularizer: Regularizer | None = getattr(adversary, "regularizer", None)
        self._lam: float = getattr(adversary, "lam", 0.0)
        self._prior = adversary.q
        reference = getattr(adversary, "reference", None)  # of a rule that plays on f − f*
        self._reference = [0.0] * len(domains) if reference is None else reference.tolist()
        self._domains = domains
        self._needed = max(1, math.ceil(LONG * iterations))
        self._length, self._heaviest = 0, -1
        self._forget()
        self.warning: str | None = None

    def see(self, row: Row) -> None:
        """The next iteration's weights and losses, in order."""
        if len(self._domains) < 2 or self.warning is not None:
            return
        heaviest = max(range(len(row.weights)), key=row.weights.__getitem__)
        few = math.exp(-sum(p * math.log(p) for p in row.weights if p > 0)) < FEW
        if not few or heaviest != self._heaviest:
            self._length, self._heaviest = 0, heaviest
            self._forget()
        if not few:
            return
        self._length += 1
        for k, loss in enumerate(row.batch_losses):
            if not math.isnan(loss):  # NaN: the domain was not drawn
                self._loss_sums[k] += loss
                self._losses_seen[k] += 1
        if self._length >= self._needed:
            self.warning = self._words(row)

    def _forget(self) -> None:
        self._loss_sums, self._losses_seen = [0.0] * len(self._domains), [0] * len(self._domains)

    def _words(self, row: Row) -> str:
        text = (
            f"nearly all weight on {self._domains[self._heaviest]} for {self._length} iterations "
            f"up to {row.iteration} (effective number of domains below {FEW})"
        )
        sums = zip(self._loss_sums, self._losses_seen, self._reference, strict=True)
        means = [total / count - best for total, count, best in sums if count]
        lam = None
        if self._regularizer is not None and len(means) == len(self._domains):
            lam = lam_keeping_all_in_play(self._regularizer, means, self._prior, FEW)
        if lam is None or lam <= self._lam:  # λ is large enough: p answers older losses
            return text
        return f"{text}; at these losses method.lam={_rounded_up(lam)} keeps every domain in play"

    def state_dict(self) -> dict[str, Any]:
        return {
            "length": self._length,
            "heaviest": self._heaviest,
            "loss_sums": self._loss_sums,
            "losses_seen": self._losses_seen,
            "warning": self.warning,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._length, self.warning = state["length"], state["warning"]
        self._heaviest = state["heaviest"]
        self._loss_sums = list(state["loss_sums"])
        all_seen = [self._length] * len(self._loss_sums)  # before a domain could be absent
        self._losses_seen = list(state.get("losses_seen", all_seen))


def _rounded_up(lam: float) -> str:
    """λ to two digits, upwards: just above the smallest that does."""
    if lam <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(lam)) - 1)
    return f"{(math.floor(lam / unit) + 1) * unit:.2g}"


def generator_states(device: torch.device) -> dict[str, torch.Tensor]:
    """Where torch's own generators are, on the host and on the device, for a checkpoint."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_generator_states(states: Mapping[str, torch.Tensor], device: torch.device) -> None:
    """Put them back there; a run that goes on elsewhere leaves its old device's out."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
    elif device.type == "mps" and "mps" in states:
        torch.mps.set_rng_state(states["mps"])
