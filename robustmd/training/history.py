"""What an iteration leaves behind: losses, weights, seconds; on the device until they are read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch

PARTS = ("data", "model", "adversary", "measurement", "start")


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
    """A ring buffer on the device: one host read per log interval, not per iteration.

    Args:
        domains: the names behind the K columns.
        capacity: iterations it holds between two reads, >= 1.
        device: where losses and weights are.
    """

    def __init__(self, domains: tuple[str, ...], capacity: int, device: torch.device) -> None:
        self.domains = domains
        self._buffer = torch.ones(capacity, 3, len(domains), device=device)
        self._first = 1  # the iteration of the oldest row
        self._held = 0

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

    def start_at(self, iteration: int) -> None:
        """The next recorded row is this iteration's (a run that goes on)."""
        self._first, self._held = iteration, 0

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
        if self._cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            try:
                yield
            finally:
                end.record()
                self._open.append((name, start, end))
        else:
            begun = time.perf_counter()
            try:
                yield
            finally:
                self._seconds[name] += time.perf_counter() - begun

    def settle(self) -> None:
        """Wait for the device and read the events; no effect on a CPU."""
        if self._open:
            torch.cuda.synchronize()
            for name, start, end in self._open:
                self._seconds[name] += start.elapsed_time(end) / 1000.0
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
