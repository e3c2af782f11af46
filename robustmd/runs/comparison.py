"""Two runs of the same settings, data and seed: are they the same, and if not, how far apart?

The verdicts, best first:

- `identical`: metrics.csv is the same but for the seconds, and so is weights.csv.
- `within floating-point tolerance`: untrained, every loss within `START_TOLERANCE` (so the weights
  and the data were the same); at the end every loss within `LOSS_TOLERANCE` (relative above 1 nat)
  and every accuracy within `ACCURACY_TOLERANCE` points, or one example. Another device, library or
  number of threads adds the same numbers in another order, and training amplifies the last digit
  that differs so: on digits_mini, one thread against two are 10⁻³ nats apart after 100 iterations
  of 1,000, up to 0.25 midway, 0.03 nats and 0.9 points at the end. So the course in between is not
  compared.
- `within seed spread`: the worst training loss and the worst test accuracy lie in the 95 %
  prediction interval of a further seed, mean ± t₀.₉₇₅,ₙ₋₁ · s · √(1 + 1/n), over the n seeds of
  these settings that have finished, `LEAST_SEEDS` at least.
- `different`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from robustmd.errors import UserError
from robustmd.runs import files
from robustmd.runs.run import Measurement, Run
from robustmd.runs.untrusted import Unreadable, read_table

START_TOLERANCE = 1e-4
LOSS_TOLERANCE = 0.05
ACCURACY_TOLERANCE = 1.5  # points
LEAST_SEEDS = 3
ENVIRONMENT = ("robustmd", "git_commit", "python", "platform", "cpu", "device", "threads")

IDENTICAL = "identical"
TOLERANCE = "within floating-point tolerance"
SPREAD = "within seed spread"
DIFFERENT = "different"


@dataclass(frozen=True)
class Comparison:
    """A verdict, and in lines what it rests on."""

    verdict: str
    reasons: tuple[str, ...]

    @property
    def is_reproduced(self) -> bool:
        return self.verdict != DIFFERENT


def compare(old: Run, new: Run, seeds: Sequence[Run]) -> Comparison:
    """How `new` stands to `old`.

    Args:
        old: the run that was to be reproduced; finished.
        new: its reproduction; finished.
        seeds: the finished runs of the same settings, `old` among them.
    """
    rows, others = ([Measurement(*row) for row in _rows(run, files.METRICS)] for run in (old, new))
    weights = [_without_nan(_rows(run, files.WEIGHTS)) for run in (old, new)]
    same_weights = weights[0] == weights[1]
    if _without_seconds(rows) == _without_seconds(others) and same_weights:
        return Comparison(IDENTICAL, (f"{len(rows)} measurements and every weight are the same",))
    if [_place(row) for row in rows] != [_place(row) for row in others]:
        return Comparison(DIFFERENT, ("they measured other things: see the two metrics.csv",))
    last = max(row.iteration for row in rows)
    start = _furthest(rows, others, 0)
    end = _furthest(rows, others, last)
    reasons = (
        f"untrained, losses differ by {start.loss:.1e} at most (tolerance {START_TOLERANCE:g})",
        f"after iteration {last}, losses by {end.loss:.1e} (tolerance {LOSS_TOLERANCE:g}, relative "
        f"above 1 nat), accuracies by {end.accuracy:.2f} points (tolerance {ACCURACY_TOLERANCE:g})",
    )
    if start.loss <= START_TOLERANCE and end.loss <= LOSS_TOLERANCE and end.is_accurate:
        return Comparison(TOLERANCE, reasons)
    is_inside, words = _seed_spread(new, seeds)
    return Comparison(SPREAD if is_inside else DIFFERENT, (*reasons, *words))


def _without_seconds(rows: Sequence[Measurement]) -> list[Measurement]:
    return [row._replace(seconds=0.0) for row in rows]


def _rows(run: Run, name: str) -> list[tuple[Any, ...]]:
    try:
        return read_table(run.path / name)
    except Unreadable as reason:
        raise UserError(f"{run.path}: {reason}; run it again with force=true") from None


def _without_nan(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """NaN, the loss of a domain that was not drawn, is not equal to itself; None is."""
    return [tuple(None if value != value else value for value in row) for row in rows]  # noqa: PLR0124


def _place(row: Measurement) -> tuple[int, str, str, int]:
    return row.iteration, row.split, row.domain, row.examples


class _Furthest(NamedTuple):
    """The largest differences: of losses (relative above 1 nat), of accuracies [points]."""

    loss: float
    accuracy: float
    is_accurate: bool


def _furthest(
    rows: Sequence[Measurement], others: Sequence[Measurement], iteration: int
) -> _Furthest:
    """Over the measurements after `iteration`; a loss that is no number is infinitely far."""
    loss, accuracy, is_accurate = 0.0, 0.0, True
    for one, other in zip(rows, others, strict=True):
        if one.iteration != iteration:
            continue
        apart = abs(one.loss - other.loss) / max(1.0, abs(one.loss))
        points = abs(one.accuracy - other.accuracy)
        loss = max(loss, apart if math.isfinite(apart) else math.inf)
        accuracy = max(accuracy, points)
        is_accurate &= points <= max(ACCURACY_TOLERANCE, 100.0 / max(1, one.examples) + 1e-9)
    return _Furthest(loss, accuracy, is_accurate)


def _seed_spread(new: Run, seeds: Sequence[Run]) -> tuple[bool, tuple[str, ...]]:
    n = len(seeds)
    if n < LEAST_SEEDS:
        return False, (
            f"the spread over seeds is not known: {n} of {LEAST_SEEDS} seeds of these settings "
            "have finished in the tree",
        )
    from scipy import special  # noqa: PLC0415 - only where it comes to this

    factor = float(special.stdtrit(n - 1, 0.975)) * math.sqrt(1 + 1 / n)
    inside, words = True, []
    for name, value, values in (
        ("worst training loss", new.worst_loss("train"), [s.worst_loss("train") for s in seeds]),
        (
            "worst test accuracy",
            new.worst_accuracy("test"),
            [s.worst_accuracy("test") for s in seeds],
        ),
    ):
        mean, width = statistics.fmean(values), factor * statistics.stdev(values)
        inside &= abs(value - mean) <= width
        words.append(f"{name} {value:.4f}; a further seed: {mean:.4f} ± {width:.4f} ({n} seeds)")
    return inside, tuple(words)


def environment_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """ "torch 2.13 → 2.14": what differs between two environment.json."""
    pairs = [(key, old.get(key), new.get(key)) for key in ENVIRONMENT]
    before, now = (e.get("packages") for e in (old, new))
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        pairs += [(key, before.get(key), now.get(key)) for key in dict.fromkeys((*before, *now))]
    return [f"{key} {one} → {other}" for key, one, other in pairs if one != other]
