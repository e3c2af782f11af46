"""Losses and weights of every iteration, kept on the device and read now and then."""

from __future__ import annotations

from dataclasses import dataclass

import torch


class Diverged(Exception):
    """A batch loss was not finite."""

    def __init__(self, iteration: int, domain: str) -> None:
        super().__init__(f"the loss of {domain} was not finite in iteration {iteration}")
        self.iteration = iteration
        self.domain = domain


@dataclass(frozen=True)
class Row:
    """What one iteration used: p_t and f̂ᵗ (nats) of every domain, in order."""

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
        self._buffer = torch.zeros(capacity, 2, len(domains), device=device)
        self._first = 1  # the iteration of the oldest row
        self._held = 0

    def record(self, weights: torch.Tensor, losses: torch.Tensor) -> None:
        """Keep p_t and f̂ᵗ ([K] each); no host-device sync."""
        row = self._buffer[self._held]
        row[0].copy_(weights)
        row[1].copy_(losses)
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
        held = self._buffer[: self._held].tolist()
        rows = [Row(self._first + i, tuple(p), tuple(f)) for i, (p, f) in enumerate(held)]
        self.start_at(self._first + self._held)
        for row in rows:
            for domain, loss in zip(self.domains, row.batch_losses, strict=True):
                if not abs(loss) < float("inf"):  # also catches NaN
                    raise Diverged(row.iteration, domain)
        return rows
