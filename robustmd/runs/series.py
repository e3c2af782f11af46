"""One split's measurements over a run, as arrays: what means, curves and selections are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustmd.runs.reducers import worst

if TYPE_CHECKING:
    from robustmd.runs.run import Measurement


MEASURED = ("loss", "accuracy")  # of every run, in metrics.csv


@dataclass(frozen=True, eq=False)
class Series:
    """The n measurements of one split that have exactly one sound row for each of K domains.

    `iterations` int64 [n], ascending; `seconds` float64 [n], training time so far;
    `loss` float64 [n, K], mean cross entropy f_k(W_t) [nats]; `accuracy` float64 [n, K] [percent];
    `examples` int64 [n, K]. Columns stand in the order of these domains.
    `dropped`: iterations of the measurements that are not whole, ascending.
    """

    iterations: np.ndarray
    seconds: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    examples: np.ndarray
    dropped: tuple[int, ...] = ()

    @property
    def worst_loss(self) -> np.ndarray:
        """f_w(t) = max_k f_k(W_t), [n]."""
        return worst(self.loss, "smaller")

    @property
    def worst_accuracy(self) -> np.ndarray:
        """min_k Acc_k(W_t), [n]."""
        return worst(self.accuracy, "larger")

    def values(self, metric: str) -> np.ndarray:
        """float64 [n, K] of one of `MEASURED`."""
        found: np.ndarray = getattr(self, metric)
        return found

    def at(self, iterations: np.ndarray) -> Series:
        """The measurements at these iterations."""
        rows = np.isin(self.iterations, iterations)
        return Series(
            self.iterations[rows],
            self.seconds[rows],
            self.loss[rows],
            self.accuracy[rows],
            self.examples[rows],
        )


def history_of(rows: Iterable[Measurement], domains: Sequence[str]) -> Mapping[str, Series]:
    """{split: its series}, from the rows of a metrics.csv in any order; those of other domains do
    not count."""
    by_split: dict[str, dict[int, list[Measurement]]] = {}
    wanted = frozenset(domains)
    for row in rows:
        if row.domain in wanted:
            by_split.setdefault(row.split, {}).setdefault(row.iteration, []).append(row)
    return {split: _series(found, domains) for split, found in by_split.items()}


def _series(found: Mapping[int, list[Measurement]], domains: Sequence[str]) -> Series:
    places = {domain: place for place, domain in enumerate(domains)}
    whole: list[list[Measurement]] = []
    iterations, dropped = [], []
    for iteration in sorted(found):
        rows = found[iteration]
        if _is_whole(rows, places):
            iterations.append(iteration)
            whole.append(sorted(rows, key=lambda row: places[row.domain]))
        else:
            dropped.append(iteration)
    shape = (len(whole), len(domains))
    return Series(
        iterations=np.array(iterations, np.int64),
        seconds=np.array([rows[0].seconds for rows in whole], np.float64),
        loss=np.array([[r.loss for r in rows] for rows in whole], np.float64).reshape(shape),
        accuracy=np.array([[r.accuracy for r in rows] for rows in whole], float).reshape(shape),
        examples=np.array([[r.examples for r in rows] for rows in whole], np.int64).reshape(shape),
        dropped=tuple(dropped),
    )


def _is_whole(rows: Sequence[Measurement], places: Mapping[str, int]) -> bool:
    """One row for each domain, with a finite loss and an accuracy that can be."""
    return (
        len(rows) == len(places)
        and {row.domain for row in rows} == places.keys()
        and all(math.isfinite(row.loss) and 0 <= row.accuracy <= 100 for row in rows)
    )
