"""Looks for what a user should be told of a run: weights that have left all but one domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from robustmd.adversary import Regularizer, lam_keeping_all_in_play
from robustmd.adversary.base import Adversary
from robustmd.training.history import Row

FEW = 1.05  # effective number of domains exp(H(p)) below which p is on one domain
LONG = 0.1  # of the run's iterations: a stretch worth a warning


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
