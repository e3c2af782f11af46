"""Where the time goes, by part, without stopping the device to look."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

PARTS = ("data", "model", "adversary", "measurement", "start")


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
