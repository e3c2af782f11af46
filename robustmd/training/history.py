"""Losses and weights of every iteration, kept on the device and read now and then."""

from __future__ import annotations

from dataclasses import dataclass

import torch


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
