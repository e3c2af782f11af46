"""What a reader gets from a run directory: `Run`, its `Measurement`s, and `Problem`s."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from robustmd.errors import listed, printable
from robustmd.metrics import worst
from robustmd.registry import METRICS
from robustmd.runs.untrusted import Unreadable

Constant = Mapping[str, Sequence[str]]  # split -> domains for which one class is predicted
LONGEST = 1e10  # seconds; more is no time that a run took


class LossName(NamedTuple):
    """What a loss is in words, its unit, and of what: "classes", or "numbers", which have no
    accuracy."""

    words: str = "mean cross entropy"
    unit: str = "nats"
    targets: str = "classes"

    @property
    def in_unit(self) -> str:
        """ " in nats"; "" where it has no unit."""
        return f" in {self.unit}" if self.unit else ""

    @property
    def bracket(self) -> str:
        """ " [nats]", for an axis."""
        return f" [{self.unit}]" if self.unit else ""


CROSS_ENTROPY = LossName()


class Measurement(NamedTuple):
    """One row of metrics.csv: the mean `loss` (see `Run.loss`) and the `accuracy` in percent (None
    where labels are numbers) over `examples` examples of one split of one domain, after `iteration`
    iterations (0: untrained); `seconds` of training so far."""

    iteration: int
    seconds: float
    split: str
    domain: str
    loss: float
    accuracy: float | None
    examples: int


@dataclass(frozen=True, eq=False)
class Series:
    """The n measurements of one split that have exactly one sound row for each of K domains.

    `iterations` int64 [n], ascending; `seconds` float64 [n], training time so far;
    `loss` float64 [n, K], mean f_k(W_t); `accuracy` float64 [n, K] [percent], NaN: there is none;
    `examples` int64 [n, K]. Columns stand in the order of these domains.
    `dropped`: iterations of the measurements that are not whole, ascending.
    """

    iterations: np.ndarray
    seconds: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    examples: np.ndarray
    dropped: tuple[int, ...] = ()

    def values(self, metric: str) -> np.ndarray:
        """float64 [n, K] of one of `MEASURED`."""
        found: np.ndarray = getattr(self, metric)
        return found

    def worst(self, metric: str) -> np.ndarray:
        """f_w(t) = max_k f_k(W_t), or min_k Acc_k(W_t), [n]."""
        return worst(self.values(metric), METRICS[metric].better)

    def at(self, iterations: np.ndarray) -> Series:
        """The measurements at these iterations."""
        rows = np.isin(self.iterations, iterations)
        columns = ("iterations", "seconds", "loss", "accuracy", "examples")
        return Series(**{name: getattr(self, name)[rows] for name in columns})


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run directory whose config.yaml and summary.json could be read.

    `domains` are those that every mean, worst case and curve is over, in the data's order: all that
    were `measured` but the `unseen`, which `data.unseen` kept out of training.
    `final[split][domain]` is the last measurement in metrics.csv, made after the last iteration on
    all examples of the split; `history[split]` are all measurements of `domains`, those before the
    last on `examples` of the training set, and `unseen_history[split]` those of `unseen`. All are
    empty unless the run is finished and sound. `environment` is empty where environment.json could
    not be read.
    """

    path: Path
    root: Path
    config: dict[str, Any]
    summary: dict[str, Any]
    environment: dict[str, Any]
    data: str
    method: str
    seed: int
    status: str
    measured: tuple[str, ...]
    unseen: tuple[str, ...] = ()
    final: Mapping[str, Mapping[str, Measurement]] = field(default_factory=dict)
    history: Mapping[str, Series] = field(default_factory=dict)
    unseen_history: Mapping[str, Series] = field(default_factory=dict)

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """Without the unseen."""
        return tuple(name for name in self.measured if name not in self.unseen)

    @property
    def place(self) -> str:
        """Its path below the outputs folder."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def label(self) -> str:
        """Name of the method, for an individual model with the domain it was trained on."""
        return f"{self.method} {self.domain}" if self.domain else self.method

    @property
    def domain(self) -> str | None:
        """The one domain an individual model was trained on; None for a mixture."""
        domain = self.config["method"].get("domain") if self.method == "individual" else None
        if isinstance(domain, int) and 0 <= domain < len(self.measured):
            return self.measured[domain]
        return None if domain is None else str(domain)

    @property
    def lam(self) -> float | None:
        """λ of the method's regularizer, None where the method has none."""
        lam = self.config["method"].get("lam")
        return float(lam) if isinstance(lam, int | float) else None

    @property
    def seconds(self) -> dict[str, float]:
        """Time by part [s]: training (with the adversary's), adversary, data, measurement, total;
        what summary.json does not give as a number is not there."""
        parts = self.summary.get("seconds")
        found = parts.items() if isinstance(parts, dict) else ()
        return {name: float(value) for name, value in found if _is_duration(value)}

    @cached_property
    def loss_name(self) -> LossName:
        """What its losses are; of a run that does not say, cross entropy."""
        found = self.summary.get("loss")
        about = found if isinstance(found, dict) else {}
        name, unit = about.get("name"), about.get("unit")
        if not isinstance(name, str) or not isinstance(unit, str):
            return CROSS_ENTROPY
        targets = "numbers" if about.get("targets") == "numbers" else "classes"
        return LossName(f"mean {printable(name)}", printable(unit), targets)

    @property
    def are_numbers(self) -> bool:
        """Whether its labels are numbers and no classes, so that there is no accuracy."""
        return self.loss_name.targets == "numbers"

    @property
    def device(self) -> str:
        """What it was trained on: "cpu", a GPU's name, "unknown"."""
        return str(self.environment.get("device") or "unknown")

    @property
    def experiment(self) -> str:
        """That it was made for, the first that asked for it; "" where none did."""
        return str(self.environment.get("experiment") or "")

    def loss(self, split: str, domain: str) -> float:
        """Final f_k: mean loss of one domain."""
        return self.final[split][domain].loss

    def accuracy(self, split: str, domain: str) -> float:
        """Final Acc_k: accuracy on one domain [percent]; NaN: there is none."""
        found = self.final[split][domain].accuracy
        return math.nan if found is None else found

    def worst(self, metric: str, split: str) -> float:
        """f_w = max_k f_k, or Acc_w = min_k Acc_k [percent], within this run."""
        values = [getattr(self, metric)(split, domain) for domain in self.domains]
        return float(worst(values, METRICS[metric].better))


@dataclass(frozen=True)
class Problem:
    """Something a report has to say about a path.

    `scope`: what is left out because of it: the whole "run", one "measurement", a foreign
    "directory", or nothing ("remark"). `run` is given where config and summary could be read.
    """

    path: Path
    reason: str
    scope: Literal["run", "measurement", "directory", "remark"] = "run"
    run: Run | None = None

    @property
    def status(self) -> str | None:
        """Status that the run itself recorded; None where unknown."""
        return self.run.status if self.run else None


@dataclass(frozen=True)
class Collection:
    """What lies below an outputs folder: finished, sound runs, and all there is to say, by path."""

    outputs: Path
    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]


def constant_of(summary: Mapping[str, Any]) -> Constant:
    """What summary.json's `final` measures say of that; old ones say nothing."""
    final = summary.get("final")
    return {
        str(split): [
            str(name)
            for name, one in measures.items()
            if isinstance(one, dict) and one.get("constant") is True
        ]
        for split, measures in (final.items() if isinstance(final, dict) else ())
        if isinstance(measures, dict)
    }


def one_class_words(constant: Constant) -> str:
    """ "predicts one class for all images of train: a; test: a, b"; "" where it does nowhere."""
    parts = [f"{split}: {listed(names)}" for split, names in constant.items() if names]
    return f"predicts one class for all images of {'; '.join(parts)}" if parts else ""


def unseen_domains(config: Mapping[str, Any], summary: Mapping[str, Any]) -> tuple[str, ...]:
    """What summary.json names as unseen; of a run from before it did, config.yaml's `data.unseen`.
    Raises `Unreadable` where it is no list of names."""
    data = config.get("data")
    asked = data.get("unseen") if isinstance(data, Mapping) else None
    named = summary.get("unseen", asked)
    if named is None:
        return ()
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise Unreadable("the run's unseen domains are no list of names")
    return tuple(named)


def history_of(rows: Iterable[Measurement], domains: Sequence[str]) -> Mapping[str, Series]:
    """{split: its series}, from the rows of a metrics.csv in any order; those of other domains do
    not count."""
    places = {domain: place for place, domain in enumerate(domains)}
    found: dict[str, dict[int, list[Measurement]]] = {}
    for row in rows:
        if row.domain in places:
            found.setdefault(row.split, {}).setdefault(row.iteration, []).append(row)
    return {split: _series(measured, places) for split, measured in found.items()}


def _series(measured: Mapping[int, list[Measurement]], places: Mapping[str, int]) -> Series:
    whole: list[list[Measurement]] = []
    dropped = []
    for iteration in sorted(measured):
        rows = sorted(measured[iteration], key=lambda row: places[row.domain])
        names = [row.domain for row in rows]
        if names == list(places) and all(map(is_sound, rows)):
            whole.append(rows)
        else:
            dropped.append(iteration)

    def column(name: str, kind: type) -> np.ndarray:
        values = [[getattr(row, name) for row in rows] for rows in whole]
        return np.array(values, kind).reshape(len(whole), len(places))

    return Series(
        iterations=column("iteration", np.int64)[:, 0],
        seconds=column("seconds", np.float64)[:, 0],
        loss=column("loss", np.float64),
        accuracy=column("accuracy", np.float64),
        examples=column("examples", np.int64),
        dropped=tuple(dropped),
    )


def is_sound(row: Measurement) -> bool:
    """A finite loss, and an accuracy that can be."""
    return math.isfinite(row.loss) and (row.accuracy is None or 0 <= row.accuracy <= 100)


def _is_duration(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < LONGEST  # type: ignore[operator]
