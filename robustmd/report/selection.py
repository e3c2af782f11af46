"""Which of a run's measurements a number is of: one rule for every row of a report.

No rule looks at the test set: `final` and `last5` look at nothing, `best-val` at the validation
split alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from robustmd.report.names import clean
from robustmd.runs import files
from robustmd.runs.run import MEASURED, Run, Series
from robustmd.runs.untrusted import Unreadable, read_table

AVERAGED = "_averaged"  # ends the splits that a run measured W̄ on, the mean of its iterates
WINDOW = 5
WORDS = {
    "final": "the final measurement (after the last iteration)",
    "last5": "the mean of the last five measurements (fewer where a run made fewer)",
    "best-val": "the measurement with the smallest worst-case validation loss",
}
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
    def seed(self) -> int:
        return self.run.seed

    @property
    def domains(self) -> tuple[str, ...]:
        return self.run.domains

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
        if self.run.are_numbers:
            return self.domains[int(self.means("loss", split).argmax())]
        return self.domains[int(self.means("accuracy", split).argmin())]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """{domain: its place}."""
        return {name: place for place, name in enumerate(self.domains)}

    @cached_property
    def further(self) -> Mapping[str, np.ndarray]:
        """{metric: [n, K] on the test sets} of what was measured beside loss and accuracy; NaN
        where a domain was not."""
        path = self.run.path / files.MEASURES
        try:
            frame = pd.DataFrame(read_table(path), columns=[*files.COLUMNS[path.name]])
        except Unreadable:
            return {}
        tested = frame[(frame["split"] == "test") & frame["domain"].isin(self.domains)]
        times = list(self.iterations("test"))
        return {
            clean(str(metric)): rows.pivot_table("value", "iteration", "domain", "last")
            .reindex(index=times, columns=list(self.domains))
            .to_numpy(float)
            for metric, rows in tested[tested["iteration"].isin(times)].groupby("metric")
        }

    @property
    def subset(self) -> int | None:
        """The smallest number of training examples of a domain that a selected measurement took
        while the last one took more; None where all took the whole set."""
        chosen = self._series["train"].examples
        whole = [self.run.final["train"][name].examples for name in self.domains]
        return int(chosen.min()) if (chosen < np.array([whole])).any() else None


@dataclass(frozen=True)
class Selection:
    """`name`: "final", "last5" or "best-val"."""

    name: str = "last5"

    @property
    def words(self) -> str:
        """For a caption: what every value is of."""
        return WORDS[self.name]

    def select(self, run: Run) -> Selected | None:
        """The run under this rule; None where the rule needs a validation split and none is there.

        The averaged model's splits are selected by themselves, and left out where the rule has
        nothing to go by.
        """
        rule = _RULES[self.name]
        last = {name: s for name, s in run.history.items() if not name.endswith(AVERAGED)}
        averaged = {name: s for name, s in run.history.items() if name.endswith(AVERAGED)}
        chosen = rule(last, "val")
        if not chosen:
            return None
        chosen |= rule(averaged, f"val{AVERAGED}")
        return Selected(run, chosen, _unseen(run, chosen))


def _unseen(run: Run, chosen: History) -> Selected | None:
    """The unseen domains' measurements at the iterations that the others chose."""
    if not run.unseen:
        return None
    there = [name for name in chosen if name in run.unseen_history]
    found = {name: run.unseen_history[name].at(chosen[name].iterations) for name in there}
    of_them = replace(run, measured=run.unseen, unseen=())
    return Selected(of_them, {name: part for name, part in found.items() if len(part.iterations)})


def _final(history: History, _: str) -> dict[str, Series]:
    return {split: s.at(s.iterations[-1:]) for split, s in history.items() if len(s.iterations)}


def _last5(history: History, _: str) -> dict[str, Series]:
    """Of the last five measurements after training began those that are whole."""
    found = {}
    for split, series in history.items():
        made = sorted({*map(int, series.iterations), *series.dropped} - {0})
        part = series.at(np.array(made[-WINDOW:], np.int64))
        if len(part.iterations):
            found[split] = part
    return found


def _best_val(history: History, validation: str) -> dict[str, Series]:
    """argmin_t max_k f_k(W_t) on validation, the earliest of equals, where all splits were
    measured."""
    if validation not in history:
        return {}
    common = set.intersection(*(set(map(int, s.iterations)) for s in history.values())) - {0}
    candidates = history[validation].at(np.array(sorted(common), np.int64))
    if not len(candidates.iterations):
        return {}
    best = candidates.iterations[[int(candidates.worst_loss.argmin())]]
    return {split: series.at(best) for split, series in history.items()}


_RULES: Mapping[str, Callable[[History, str], dict[str, Series]]] = {
    "final": _final,
    "last5": _last5,
    "best-val": _best_val,
}
