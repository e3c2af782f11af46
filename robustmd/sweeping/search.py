"""A search's trials, in a storage of Optuna's: draws them, and knows what came of each."""

from __future__ import annotations

import random
from collections.abc import Mapping
from statistics import median

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState

from robustmd.config.ranges import Tune
from robustmd.sweeping.trials import WorstLoss

AT_RANDOM = 5  # trials, before results say where the next ones are


class Search:
    """The study `name` in the storage of that URL, new or as it was left; `ranges` are key -> where
    it is drawn from, `seed` is of the draws."""

    def __init__(self, storage: str, name: str, ranges: Mapping[str, Tune], seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
        self._ranges = {key: _distribution(of) for key, of in ranges.items()}
        self._seed = seed

    def next(self, trials: int, size: int) -> list[Trial]:
        """Those under way when the search was interrupted, and new ones: up to `size` of them,
        until `trials` are there that have not failed."""
        under_way = self._of(TrialState.RUNNING)
        batch = [Trial(self._study, one._trial_id) for one in under_way]
        there = len(self._study.trials)
        missing = trials - there + len(self._of(TrialState.FAIL))
        for number in range(there, there + min(missing, size - len(batch))):
            # Drawn with a seed of its own, so that interruptions change no draw.
            seed = random.Random(f"{self._seed} {number}").getrandbits(32)
            self._study.sampler = TPESampler(seed=seed, n_startup_trials=AT_RANDOM)
            batch.append(self._study.ask(self._ranges))
        return batch

    def tell(self, trial: Trial, loss: WorstLoss | None) -> None:
        """What came of a trial; None: it failed, and another is drawn in its place."""
        if loss is None:
            self._study.tell(trial, state=TrialState.FAIL)
            return
        for iteration, least in loss.so_far.items():
            trial.report(least, iteration)
        if loss.pruned:
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, float(loss))

    def limits(self, enough: int | None) -> dict[int, float]:
        """iteration -> the median of the finished trials, where `enough` have been measured."""
        found: dict[int, list[float]] = {}
        for trial in self._of(TrialState.COMPLETE):
            for iteration, least in trial.intermediate_values.items():
                found.setdefault(iteration, []).append(least)
        return {at: median(of) for at, of in found.items() if enough and len(of) >= enough}

    def best(self) -> FrozenTrial | None:
        """Of those that were trained to their end; None without any."""
        return self._study.best_trial if self._of(TrialState.COMPLETE) else None

    def counts(self) -> str:
        """As "12 trials, 3 of them pruned"; those that failed do not count."""
        there = len(self._study.trials) - len(self._of(TrialState.FAIL))
        return f"{there} trials, {len(self._of(TrialState.PRUNED))} of them pruned"

    def _of(self, state: TrialState) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False, states=(state,))


def _distribution(of: Tune) -> BaseDistribution:
    if of.kind == "choice":
        return CategoricalDistribution(of.ends)
    low, high = of.ends
    return FloatDistribution(low, high, log=of.kind == "log")
