"""Which of a run's measurements a number is of: one rule for every row of a report.

No rule looks at the test set: `final` and `last5` look at nothing, `best-val` at the validation
split alone.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustmd.report.many import tenth
from robustmd.runs.run import Run
from robustmd.runs.series import Series

AVERAGED = "_averaged"  # ends the splits that a run measured W̄ on, the mean of its iterates
WINDOW = 5
DEFAULT = "last5"
WORDS = {
    "final": "the final measurement (after the last iteration)",
    "last5": "the mean of the last five measurements (fewer where a run made fewer)",
    "best-val": "the measurement with the smallest worst-case validation loss",
}


@dataclass(frozen=True)
class Selected:
    """What one run contributes: its measurements at the selected iterations, averaged.

    The worst domain is taken within each measurement, f_w(t) = max_k f_k(W_t), and then averaged,
    as it is within each run before the mean over seeds. `unseen` is the same of the domains kept
    out of training, as far as they were measured then; None where there are none.
    """

    run: Run
    _series: Mapping[str, Series]
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

    def loss(self, split: str, domain: str) -> float:
        """f_k [nats]."""
        return float(self.losses[split][self._places[domain]])

    def accuracy(self, split: str, domain: str) -> float:
        """Acc_k [percent]."""
        return float(self.accuracies[split][self._places[domain]])

    def examples(self, split: str, domain: str) -> int:
        """How many of the domain were measured: the fewest, where measurements differ."""
        return int(self._series[split].examples[:, self._places[domain]].min())

    def training_size(self, domain: str) -> int:
        """Examples of the domain's training set, which the last measurement takes whole."""
        return self.run.final["train"][domain].examples

    def worst_loss(self, split: str) -> float:
        """f_w [nats]."""
        return float(self._series[split].worst_loss.mean())

    def worst_accuracy(self, split: str) -> float:
        """Acc_w [percent]."""
        return float(self._series[split].worst_accuracy.mean())

    def worst_tenth_loss(self, split: str) -> float:
        """The mean f_k over the ⌈K/10⌉ domains with the largest, within each measurement [nats]."""
        ascending = np.sort(self._series[split].loss, axis=1)
        return float(ascending[:, -tenth(len(self.domains)) :].mean())

    def worst_tenth_accuracy(self, split: str) -> float:
        """The mean Acc_k over the ⌈K/10⌉ domains with the lowest, likewise [percent]."""
        ascending = np.sort(self._series[split].accuracy, axis=1)
        return float(ascending[:, : tenth(len(self.domains))].mean())

    def worst_domain(self, split: str) -> str:
        """argmin_k Acc_k, the first of equals."""
        return self.domains[int(self.accuracies[split].argmin())]

    @cached_property
    def losses(self) -> Mapping[str, np.ndarray]:
        """{split: f_k of all domains [K]} [nats]."""
        return {split: series.loss.mean(axis=0) for split, series in self._series.items()}

    @cached_property
    def accuracies(self) -> Mapping[str, np.ndarray]:
        """{split: Acc_k of all domains [K]} [percent]."""
        return {split: series.accuracy.mean(axis=0) for split, series in self._series.items()}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.domains)}

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

    name: str = DEFAULT

    def __post_init__(self) -> None:
        if self.name not in WORDS:
            raise ValueError(f"selection {self.name!r}: must be one of {', '.join(WORDS)}")

    @property
    def words(self) -> str:
        """For a caption: what every value is of."""
        return WORDS[self.name]

    def select(self, run: Run) -> Selected | None:
        """The run under this rule; None where the rule needs a validation split and none is there.

        The averaged model's splits are selected by themselves, and left out where the rule has
        nothing to go by.
        """
        last = [split for split in run.history if not split.endswith(AVERAGED)]
        averaged = [split for split in run.history if split.endswith(AVERAGED)]
        chosen = _RULES[self.name]({split: run.history[split] for split in last}, "")
        if chosen is None:
            return None
        means = _RULES[self.name]({split: run.history[split] for split in averaged}, AVERAGED)
        chosen |= means or {}
        return Selected(run, chosen, _unseen(run, chosen))


def _unseen(run: Run, chosen: Mapping[str, Series]) -> Selected | None:
    """The unseen domains at the iterations that the others chose."""
    if not run.unseen:
        return None
    there = [split for split in chosen if split in run.unseen_history]
    found = {split: _at(run.unseen_history[split], chosen[split].iterations) for split in there}
    of_them = dataclasses.replace(run, measured=run.unseen, unseen=())
    return Selected(of_them, {s: part for s, part in found.items() if len(part.iterations)})


def _final(history: Mapping[str, Series], _: str) -> dict[str, Series] | None:
    return {split: _at(s, s.iterations[-1:]) for split, s in history.items() if len(s.iterations)}


def _last5(history: Mapping[str, Series], _: str) -> dict[str, Series] | None:
    """Of the last five measurements after training began those that are whole."""
    found = {}
    for split, series in history.items():
        made = sorted({*map(int, series.iterations), *series.dropped} - {0})
        part = _at(series, np.array(made[-WINDOW:], np.int64))
        if len(part.iterations):
            found[split] = part
    return found


def _best_val(history: Mapping[str, Series], ending: str) -> dict[str, Series] | None:
    """argmin_t max_k f_k(W_t) on val, the earliest of equals, where all splits were measured."""
    val = history.get(f"val{ending}")
    if val is None:
        return None
    common = set.intersection(*(set(map(int, s.iterations)) for s in history.values())) - {0}
    candidates = _at(val, np.array(sorted(common), np.int64))
    if not len(candidates.iterations):
        return None
    best = candidates.iterations[[int(candidates.worst_loss.argmin())]]
    return {split: _at(series, best) for split, series in history.items()}


def _at(series: Series, iterations: np.ndarray) -> Series:
    """The measurements at these iterations."""
    rows = np.isin(series.iterations, iterations)
    return Series(
        series.iterations[rows],
        series.seconds[rows],
        series.loss[rows],
        series.accuracy[rows],
        series.examples[rows],
    )


_Rule = Callable[[Mapping[str, Series], str], dict[str, Series] | None]
_RULES: Mapping[str, _Rule] = {"final": _final, "last5": _last5, "best-val": _best_val}
