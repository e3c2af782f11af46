"""What iterations leave behind: their seconds, and a warning where p stays on one domain."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch

from robustmd.adversary import Regularizer, lam_keeping_all_in_play
from robustmd.adversary.base import Adversary

TRAINING_PARTS = ("data", "model", "adversary")  # what "training time" is made of
PARTS = (*TRAINING_PARTS, "measurement", "start")
FEW = 1.05  # effective number of domains exp(H(p)) below which p is on one domain
LONG = 0.1  # of the run's iterations: a stretch worth a warning

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
        for marks, times in (*((marks, 1) for marks in self.marks), (self.replayed, self.replays)):
            for (_, before), (part, after) in pairwise(marks):
                spent = before.elapsed_time(after) / 1000 if self._cuda else after - before
                self.seconds[part] += spent * times
        self.marks, self.replays = [], 0

    def training(self) -> float:
        """Seconds of training, as of the last `settle()`."""
        return sum(self.seconds[part] for part in TRAINING_PARTS)


class WeightsWatch:
    """Warns once when exp(H(p)) < 1.05 for a tenth of the `iterations` on end, with the same domain
    on top, and says which λ would help. state: plain values."""

    def __init__(self, adversary: Adversary, domains: Sequence[str], iterations: int) -> None:
        self._adversary, self._domains = adversary, domains
        self._is_watched = len(domains) > 1 and adversary.learns and not adversary.signed
        self._needed = max(1, math.ceil(LONG * iterations))
        self.state: dict[str, Any] = {"warning": ""}
        self._begin(-1)

    def _begin(self, heaviest: int) -> None:
        """A stretch begins, with this domain on top."""
        zeros = [0] * len(self._domains)
        self.state |= {"heaviest": heaviest, "length": 0, "sums": zeros, "seen": zeros.copy()}

    def see(self, iteration: int, weights: Sequence[float], losses: Sequence[float]) -> None:
        """The next iteration's p [K] and f̂ᵗ [K] (NaN: not drawn), in order."""
        state = self.state
        if not self._is_watched or state["warning"]:
            return
        heaviest = weights.index(max(weights))
        few = math.exp(-sum(p * math.log(p) for p in weights if p > 0)) < FEW
        if not few or heaviest != state["heaviest"]:
            self._begin(heaviest)
        if few:
            state["length"] += 1
            for k, loss in enumerate(losses):
                if not math.isnan(loss):
                    state["sums"][k] += loss
                    state["seen"][k] += 1
            if state["length"] >= self._needed:
                state["warning"] = self._words(iteration)

    def _words(self, iteration: int) -> str:
        state, rule = self.state, self._adversary
        text = (
            f"nearly all weight on {self._domains[state['heaviest']]} for {state['length']} "
            f"iterations up to {iteration} (effective number of domains below {FEW})"
        )
        regularizer: Regularizer | None = getattr(rule, "regularizer", None)
        if regularizer is None or not all(state["seen"]):
            return text
        means = [total / count for total, count in zip(state["sums"], state["seen"], strict=True)]
        reference = getattr(rule, "reference", None)  # of a rule that plays on f − f*
        if reference is not None:
            means = [mean - best for mean, best in zip(means, reference.tolist(), strict=True)]
        lam = lam_keeping_all_in_play(regularizer, means, rule.q, FEW)
        if lam is None or lam <= getattr(rule, "lam", 0.0):  # p answers older losses
            return text
        if lam > 0:  # two digits, upwards: just above the smallest that does
            unit = 10.0 ** (math.floor(math.log10(lam)) - 1)
            lam = (math.floor(lam / unit) + 1) * unit
        return f"{text}; at these losses method.lam={lam:.2g} keeps every domain in play"
