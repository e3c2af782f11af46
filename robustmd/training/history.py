"""What iterations leave behind: losses, weights, seconds; and the watch on where the weights go."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch

from robustmd.adversary import Regularizer, lam_keeping_all_in_play
from robustmd.adversary.base import Adversary

TRAINING_PARTS = ("data", "model", "adversary")  # what "training time" is made of
PARTS = (*TRAINING_PARTS, "measurement", "start")
FEW = 1.05  # effective number of domains exp(H(p)) below which p is on one domain
LONG = 0.1  # of the run's iterations: a stretch worth a warning


class Kept:
    """What goes on from a checkpoint by the attributes that `kept` names: plain values."""

    kept: tuple[str, ...]

    def state_dict(self) -> dict[str, Any]:
        return {name: copy(getattr(self, name)) for name in self.kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, copy(state[name]))


class Diverged(Exception):
    """A loss was not finite: of an iteration's batch, or measured on a `split` after it."""

    def __init__(self, iteration: int, domain: str, split: str | None = None) -> None:
        where = f"in iteration {iteration}" if split is None else f"after iteration {iteration}"
        loss = f"{split} loss" if split else "loss"
        super().__init__(f"the {loss} of {domain} was not finite {where}")


@dataclass(frozen=True)
class Row:
    """What one iteration used: p_t and f̂ᵗ (nats) of every domain, in order; NaN: not drawn."""

    iteration: int
    weights: tuple[float, ...]
    batch_losses: tuple[float, ...]


class History:
    """The last iterations' weights and losses on the device: one host read per log interval, not
    per iteration. It holds `capacity` of them between two reads."""

    def __init__(self, domains: tuple[str, ...], capacity: int, device: torch.device) -> None:
        self.domains = domains
        self._buffer = torch.ones(capacity, 3, len(domains), device=device)
        self.start_at(1)

    def start_at(self, iteration: int) -> None:
        """The next recorded row is this iteration's."""
        self._first, self._held = iteration, 0

    def record(
        self, weights: torch.Tensor, losses: torch.Tensor, present: torch.Tensor | None = None
    ) -> None:
        """Keep p_t and f̂ᵗ ([K] each); no host-device sync.

        present: bool [K], the domains in the batch; None: all, in this and in every other call.
        """
        row = self._buffer[self._held]
        row[0].copy_(weights)
        row[1].copy_(losses)
        if present is not None:
            row[2].copy_(present)
        self._held += 1

    @property
    def full(self) -> bool:
        return self._held == len(self._buffer)

    def read(self) -> list[Row]:
        """Rows since the last read, oldest first.

        Raises:
            Diverged: a loss among them is not finite; names the first.
        """
        first, held = self._first, self._buffer[: self._held].to("cpu", copy=True)
        self.start_at(first + len(held))
        losses, present = held[:, 1], held[:, 2] > 0
        bad = (present & ~losses.isfinite()).nonzero()
        if len(bad):
            row, domain = bad[0].tolist()
            raise Diverged(first + row, self.domains[domain])
        losses[~present] = torch.nan
        return [Row(first + i, tuple(p), tuple(f)) for i, (p, f, _) in enumerate(held.tolist())]


class Clock:
    """Seconds spent in the parts of a run.

    On a CPU a part is timed by the wall clock. On CUDA, where calls return before the work is done,
    a part is bracketed by events that are read in `settle()`, once per log interval.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._open: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Book the block's time to `name`."""
        begun = time.perf_counter()
        if self._cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._open.append((name, start, end))
            start.record()
        try:
            yield
        finally:
            if self._cuda:
                end.record()
            else:
                self.add(name, time.perf_counter() - begun)

    def settle(self) -> None:
        """Wait for the device and read the events; no effect on a CPU."""
        if self._open:
            torch.cuda.synchronize()
            for name, start, end in self._open:
                self.add(name, start.elapsed_time(end) / 1000.0)
            self._open.clear()

    def add(self, name: str, seconds: float) -> None:
        self._seconds[name] += seconds

    def seconds(self, *names: str) -> float:
        """Seconds of these parts together, as of the last `settle()`."""
        return sum(self._seconds[name] for name in names)

    def state_dict(self) -> dict[str, float]:
        return dict(self._seconds)

    def load_state_dict(self, seconds: Mapping[str, float]) -> None:
        self._seconds = {part: seconds.get(part, 0.0) for part in PARTS}


class WeightsWatch(Kept):
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
        for k, loss in enumerate(row.batch_losses):
            if not math.isnan(loss):  # NaN: the domain was not drawn
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


def _rounded_up(lam: float) -> str:
    """λ to two digits, upwards: just above the smallest that does."""
    if lam <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(lam)) - 1)
    return f"{(math.floor(lam / unit) + 1) * unit:.2g}"
