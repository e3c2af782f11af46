"""Which of a run's measurements a number is of: one rule for every row of a report.

No rule looks at the test set: `final` and `last40` look at nothing, `best-val` at the validation
split alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from robustmd.metrics import MEASURED, BestBy
from robustmd.registry import METRICS, Metric
from robustmd.report.names import clean
from robustmd.runs import files
from robustmd.runs.run import Run, Series
from robustmd.runs.untrusted import Unreadable, read_table

AVERAGED = "_averaged"  # ends the splits that a run measured W̄ on, the mean of its iterates
BEGIN = {"final": Fraction(1), "last40": Fraction(3, 5)}  # of the window, in parts of the run
WORDS = {
    "final": "the final measurement (after the last iteration)",
    "last40": "the mean of the measurements in the last 40 % of the run",
    "best-val": "the measurement with the smallest worst-case validation loss",
}
WORST_LOSS = BestBy.of("worst_loss")
History = Mapping[str, Series]


@dataclass(frozen=True)
class Selected:
    """What one run contributes: its measurements at the selected iterations, averaged.

    The worst domain is taken within each measurement, f_w(t) = max_k f_k(W_t), and then averaged,
    as it is within each run before the mean over seeds. `unseen` is the same of the domains kept
    out of training, as far as they were measured then; None where there are none.
    """

    run: Run
    _series: History
    unseen: "Selected | None" = None

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._series)

    def iterations(self, split: str) -> tuple[int, ...]:
        """Those that the numbers of this split are of."""
        return tuple(int(t) for t in self._series[split].iterations)

    def values(self, metric: str, split: str) -> np.ndarray:
        """Of every selected measurement and domain, [n, K]."""
        return self._series[split].values(metric) if metric in MEASURED else self.further[metric]

    def means(self, metric: str, split: str) -> np.ndarray:
        """Of each domain over the selected measurements, [K]."""
        found: np.ndarray = self.values(metric, split).mean(axis=0)
        return found

    def examples(self, split: str, domain: str) -> int:
        """How many of the domain were measured: the fewest, where measurements differ."""
        return int(self._series[split].examples[:, self.places[domain]].min())

    def worst_domain(self, split: str) -> str:
        """argmin_k Acc_k, the first of equals; argmax_k f_k where there is no accuracy."""
        kind, worst = ("loss", np.argmax) if self.run.are_numbers else ("accuracy", np.argmin)
        return self.run.domains[int(worst(self.means(kind, split)))]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """{domain: its place}."""
        return {name: place for place, name in enumerate(self.run.domains)}

    @cached_property
    def further(self) -> Mapping[str, np.ndarray]:
        """{metric: [n, K] on the test sets} of what was measured beside loss and accuracy."""
        return _further(self.run, "test", self.iterations("test"))

    @property
    def subset(self) -> int | None:
        """The smallest number of training examples of a domain that a selected measurement took
        while the last one took more; None where all took the whole set."""
        chosen = self._series["train"].examples
        whole = [self.run.final["train"][name].examples for name in self.run.domains]
        return int(chosen.min()) if (chosen < np.array([whole])).any() else None


def _further(run: Run, split: str, iterations: Iterable[int]) -> dict[str, np.ndarray]:
    """{metric: [n, K]} of measures.csv at these iterations; NaN where a domain was not measured."""
    path, times = run.path / files.MEASURES, list(iterations)
    try:
        frame = pd.DataFrame(read_table(path), columns=[*files.COLUMNS[path.name]])
    except Unreadable:
        return {}
    wanted = (frame["split"] == split) & frame["domain"].isin(run.domains)
    return {
        clean(str(metric)): rows.pivot_table("value", "iteration", "domain", "last")
        .reindex(index=times, columns=list(run.domains))
        .to_numpy(float)
        for metric, rows in frame[wanted & frame["iteration"].isin(times)].groupby("metric")
    }


@dataclass(frozen=True)
class Selection:
    """`name`: "final", "last40" or "best-val", the best by `by` on the validation sets."""

    name: str = "last40"
    by: BestBy = WORST_LOSS

    @property
    def words(self) -> str:
        """For a caption: what every value is of."""
        if self.name == "best-val" and self.by != WORST_LOSS:
            over = self.by.reducer.replace("_", " ")
            return f"the measurement with the best {over} validation {self.by.metric}"
        return WORDS[self.name]

    @property
    def lacking(self) -> str:
        """Why a run is left out that the rule can say nothing of."""
        metric, known = self.by.metric, self.by.metric in MEASURED
        lacks, more = ("", "") if known else (f" with {metric}", f" evaluation.metrics=[{metric}]")
        return (
            f"--select best-val needs a validation split{lacks} and this run has none: train with "
            f"data.validation=0.1{more}, or choose another rule"
        )

    def select(self, run: Run) -> Selected | None:
        """The run under this rule; None where the rule needs a validation split and none is there.

        The averaged model's splits are selected by themselves, and left out where the rule has
        nothing to go by.
        """
        last = {name: s for name, s in run.history.items() if not name.endswith(AVERAGED)}
        averaged = {name: s for name, s in run.history.items() if name.endswith(AVERAGED)}
        if self.name == "best-val":
            chosen = _best(run, self.by, last, "val")
            chosen |= _best(run, self.by, averaged, f"val{AVERAGED}") if chosen else {}
        else:
            chosen = _last({**last, **averaged}, BEGIN[self.name])
        return Selected(run, chosen, _unseen(run, chosen)) if chosen else None


def _unseen(run: Run, chosen: History) -> Selected | None:
    """The unseen domains' measurements at the iterations that the others chose."""
    if not run.unseen:
        return None
    there = [name for name in chosen if name in run.unseen_history]
    found = {name: run.unseen_history[name].at(chosen[name].iterations) for name in there}
    of_them = replace(run, measured=run.unseen, unseen=())
    return Selected(of_them, {name: part for name, part in found.items() if len(part.iterations)})


def _last(history: History, begin: Fraction) -> dict[str, Series]:
    """The whole measurements after iterations t ≥ begin · T, T being the last that was measured."""
    found = {}
    for split, series in history.items():
        made = {*map(int, series.iterations), *series.dropped}
        window = sorted(t for t in made if t and t >= begin * max(made))
        part = series.at(np.array(window, np.int64))
        if len(part.iterations):
            found[split] = part
    return found


def _best(run: Run, by: BestBy, history: History, validation: str) -> dict[str, Series]:
    """argmin_t of `by` on validation (max_k f_k(W_t)), the earliest of equals, where all splits
    were measured."""
    if validation not in history:
        return {}
    common = set.intersection(*(set(map(int, s.iterations)) for s in history.values())) - {0}
    candidates = history[validation].at(np.array(sorted(common), np.int64))
    # registered here or, where its code is not here, as the run has it recorded
    known = {one.name: one for one in (*further_metrics(run.summary), *METRICS.values())}
    metric = known.get(by.metric)
    if by.metric in MEASURED:
        values: np.ndarray | None = candidates.values(by.metric)
    else:
        values = _further(run, validation, map(int, candidates.iterations)).get(by.metric)
    if metric is None or values is None:
        return {}
    costs = by.cost(values, metric.better)
    if not np.isfinite(costs).any():
        return {}
    chosen = candidates.iterations[[int(costs.argmin())]]
    return {split: series.at(chosen) for split, series in history.items()}


def further_metrics(summary: Mapping[str, Any]) -> list[Metric]:
    """What summary.json says of the metrics that the run measured beside loss and accuracy, as far
    as it is sound; the module that one came from is not imported."""
    recorded = summary.get("metrics")
    metrics = []
    for name, about in recorded.items() if isinstance(recorded, dict) else ():
        found = about if isinstance(about, dict) else {}
        unit, better, decimals = (found.get(key) for key in ("unit", "better", "decimals"))
        if isinstance(unit, str) and better in ("smaller", "larger") and decimals in range(7):
            # `of` is not looked at: a report measures nothing
            like = replace(METRICS["loss"], name=clean(name), unit=clean(unit))
            metrics.append(replace(like, better=better, decimals=int(decimals or 0)))
    return metrics
