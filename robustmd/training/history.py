"""What iterations leave behind: their weights and losses, their seconds, and where p stays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robustmd.adversary import Regularizer, lam_keeping_all_in_play
from robustmd.adversary.base import Adversary

TRAINING_PARTS = ("data", "model", "adversary")  # what "training time" is made of
PARTS = (*TRAINING_PARTS, "measurement", "start")
FEW = 1.05  # effective number of domains exp(H(p)) below which p is on one domain
LONG = 0.1  # of the run's iterations: a stretch worth a warning


class Diverged(Exception):
    """A loss was not finite: of an iteration's batch, or measured on a `split` after it."""

    def __init__(self, iteration: int, domain: str, split: str | None = None) -> None:
        where = f"in iteration {iteration}" if split is None else f"after iteration {iteration}"
        loss = f"{split} loss" if split else "loss"
        super().__init__(f"the {loss} of {domain} was not finite {where}")


class Row(NamedTuple):
    """What one iteration used: p_t and f̂ᵗ (nats) of every domain, in order; NaN: not drawn."""

    iteration: int
    weights: list[float]
    losses: list[float]


def rows_of(log: Tensor, first: int, domains: tuple[str, ...]) -> list[Row]:
    """The rows of log, float [n, 2, K], of iterations `first`, `first` + 1, …; one host read.

    In it the loss of a domain that was not drawn is NaN, one that was not finite is infinite.
    Raises Diverged: names the first.
    """
    on_host = log.to("cpu", copy=True)
    bad = on_host[:, 1].isinf().nonzero()
    if len(bad):
        row, domain = bad[0].tolist()
        raise Diverged(first + row, domains[domain])
    return [Row(first + i, *both) for i, both in enumerate(on_host.tolist())]


Mark = Any  # a time of the host's clock, or an event on a CUDA stream


class Clock:
    """Seconds spent in the parts of a run, by marks that an iteration leaves between its parts.

    On a CPU a mark is the wall clock's time. On CUDA, where calls return before the work is done,
    it is an event, read in `settle()` once per log interval. A replayed graph has one set of them,
    those of its last replay: its parts count for all replays since the last reading.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self.mark: Callable[[], Mark] = self._event if self._cuda else time.perf_counter
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.marks: list[list[tuple[str, Mark]]] = []  # of each iteration, the first without a part
        self.replayed: list[tuple[str, Mark]] = []
        self.replays = 0

    @staticmethod
    def _event() -> torch.cuda.Event:
        in_graph = torch.cuda.is_current_stream_capturing()
        options = {"external": True} if in_graph else {}  # so that each replay records it anew
        event = torch.cuda.Event(enable_timing=True, **options)
        event.record()
        return event

    def settle(self) -> None:
        """Add up the marks; on CUDA wait for the device."""
        if self._cuda and (self.marks or self.replays):
            torch.cuda.synchronize()
        for marks, times in (*((one, 1) for one in self.marks), (self.replayed, self.replays)):
            for (_, before), (part, after) in pairwise(marks):
                spent = before.elapsed_time(after) / 1000 if self._cuda else after - before
                self.seconds[part] += spent * times
        self.marks, self.replays = [], 0

    def training(self) -> float:
        """Seconds of training, as of the last `settle()`."""
        return sum(self.seconds[part] for part in TRAINING_PARTS)


class WeightsWatch:
    """Warns once when exp(H(p)) < 1.05 for a tenth of the `iterations` on end, with the same domain
    on top, and says which λ would help."""

    kept = ("length", "heaviest", "loss_sums", "losses_seen", "warning")

    def __init__(self, adversary: Adversary, domains: tuple[str, ...], iterations: int) -> None:
        self._adversary, self._domains = adversary, domains
        self._is_watched = len(domains) > 1 and adversary.learns and not adversary.signed
        self._needed = max(1, math.ceil(LONG * iterations))
        self.warning: str | None = None
        self._begin(-1)

    def _begin(self, heaviest: int) -> None:
        """A stretch begins, with this domain on top."""
        self.heaviest, self.length = heaviest, 0
        self.loss_sums, self.losses_seen = [0.0] * len(self._domains), [0] * len(self._domains)

    def see(self, row: Row) -> None:
        """The next iteration's weights and losses, in order."""
        if not self._is_watched or self.warning is not None:
            return
        heaviest = max(range(len(row.weights)), key=row.weights.__getitem__)
        few = math.exp(-sum(p * math.log(p) for p in row.weights if p > 0)) < FEW
        if not few or heaviest != self.heaviest:
            self._begin(heaviest)
        if not few:
            return
        self.length += 1
        for k, loss in enumerate(row.losses):
            if not math.isnan(loss):
                self.loss_sums[k] += loss
                self.losses_seen[k] += 1
        if self.length >= self._needed:
            self.warning = self._words(row)

    def _words(self, row: Row) -> str:
        text = (
            f"nearly all weight on {self._domains[self.heaviest]} for {self.length} iterations "
            f"up to {row.iteration} (effective number of domains below {FEW})"
        )
        regularizer: Regularizer | None = getattr(self._adversary, "regularizer", None)
        if regularizer is None or not all(self.losses_seen):
            return text
        reference = getattr(self._adversary, "reference", None)  # of a rule that plays on f − f*
        best = [0.0] * len(self._domains) if reference is None else reference.tolist()
        sums = zip(self.loss_sums, self.losses_seen, best, strict=True)
        means = [total / count - least for total, count, least in sums]
        lam = lam_keeping_all_in_play(regularizer, means, self._adversary.q, FEW)
        if lam is None or lam <= getattr(self._adversary, "lam", 0.0):  # p answers older losses
            return text
        return f"{text}; at these losses method.lam={_rounded_up(lam)} keeps every domain in play"

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, state[name])


def _rounded_up(lam: float) -> str:
    """λ to two digits, upwards: just above the smallest that does."""
    if lam <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(lam)) - 1)
    return f"{(math.floor(lam / unit) + 1) * unit:.2g}"
