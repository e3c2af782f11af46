"""The runs of the study as one table: trained, measured, selected; and what is asked of it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from robustmd.metrics import worst
from robustmd.registry import METHODS
from robustmd.report.estimate import Estimate, estimate
from robustmd.studies.planted.descent import Task, Trained, train
from robustmd.studies.planted.domains import (
    NOISE,
    Factor,
    Optimum,
    Setting,
    Splits,
    cross_entropies,
    draw,
    solve_optimum,
    training_losses,
)
from robustmd.studies.planted.methods import REFERENCE, Method

NOT_LISTED = ["setting", "optimum_test", "optimum_clean", "optimum_weight"]  # in runs.csv
_ROUNDING = 1e-12  # of sums of hundreds of numbers in float64


def run_cells(
    settings: Sequence[Setting], seeds: Sequence[int], methods: Sequence[Method], iterations: int
) -> pd.DataFrame:
    """Every setting with every seed, all of one number of domains: a line for every configuration
    of every method; losses in nats.

    | column              | what                                                                  |
    |---------------------|-----------------------------------------------------------------------|
    | setting             | the `Setting`; its fields are columns of their own too                |
    | optimum             | F*; optimum_error bounds the error of F* and G*, by the certificate   |
    | optimum_test        | `test` of the optimum's model w*; so optimum_clean                    |
    | optimum_weight      | p*_1                                                                  |
    | method              | its name; configuration: its own value and learning rate in words     |
    | chosen              | whether `validation` is the smallest of the method's configurations   |
    | validation          | max_k cross entropy on the validation draw; inf: the run diverged     |
    | suboptimality       | max_k f_k(w) − F* on the training set                                 |
    | excess              | max_k (f_k(w) − f*_k) − G* on the training set                        |
    | test, clean         | max_k cross entropy on the test set, with and without flipped labels  |
    | weight              | p̄_1, the mean weight of domain 1                                      |
    | last                | `suboptimality` of w_T; the others are of w̄ where that is returned    |
    """
    drawn = [(setting, seed, draw(setting, seed)) for setting in settings for seed in seeds]
    tasks = [
        Task(setting, seed, splits.train, solve_optimum(splits.train))
        for setting, seed, splits in drawn
    ]
    trained = train(tasks, methods, iterations)
    found = []
    for i, (task, (_, _, splits)) in enumerate(zip(tasks, drawn, strict=True)):
        shared = _shared(task, splits)
        for method, became in zip(methods, trained, strict=True):
            measured = _measured(method, became, i, splits, task.optimum)
            found.append(pd.DataFrame(shared | measured))
    return pd.concat(found, ignore_index=True)


def _shared(task: Task, splits: Splits) -> dict[str, Any]:
    """The columns that all runs of one seed of a setting share."""
    best = task.optimum.worst_case
    w = best.model[None]
    return {
        "setting": task.setting,
        **asdict(task.setting),
        "seed": task.seed,
        "optimum": best.upper,
        "optimum_error": task.optimum.error,
        "optimum_test": float(_worst(cross_entropies(splits.test, w))[0]),
        "optimum_clean": float(_worst(cross_entropies(splits.clean, w))[0]),
        "optimum_weight": float(best.weights[0]),
    }


def _measured(
    method: Method, became: Trained, i: int, splits: Splits, optimum: Optimum
) -> dict[str, Any]:
    """The columns of the method's configurations on task number i."""
    returned = became.mean[i] if METHODS.flag(method.name, "averages") else became.last[i]
    f = training_losses(splits.train, returned)  # [C, K]; NaN or inf where it diverged
    f_last = training_losses(splits.train, became.last[i])
    validation = _worst(cross_entropies(splits.validation, returned))
    return {
        "method": method.name,
        "configuration": method.configurations(),
        "chosen": np.arange(len(f)) == validation.argmin(),
        "validation": validation,
        "suboptimality": _worst(f) - optimum.worst_case.upper,
        "excess": _worst(f - optimum.alone) - optimum.worst_excess.upper,
        "test": _worst(cross_entropies(splits.test, returned)),
        "clean": _worst(cross_entropies(splits.clean, returned)),
        "weight": became.mean_weights[i, :, 0],
        "last": _worst(f_last) - optimum.worst_case.upper,
    }


def _worst(losses: np.ndarray) -> np.ndarray:
    """[n, K] -> [n]: the worst of the K, inf where a model diverged."""
    found = worst(losses, "smaller")
    return np.where(np.isfinite(found), found, math.inf)


@dataclass(frozen=True)
class Results:
    """All runs of a study, see `run_cells`, and what tables and figures ask of them."""

    factors: tuple[Factor, ...]
    methods: tuple[Method, ...]
    iterations: int
    runs: pd.DataFrame

    @property
    def noise(self) -> Factor:
        """Of the factors, that of the noisy domain."""
        return next(factor for factor in self.factors if factor.name == NOISE.name)

    @cached_property
    def _of(self) -> dict[Any, pd.DataFrame]:
        """The runs of every (setting, method)."""
        return dict(iter(self.runs.groupby(["setting", "method"], sort=False)))

    def chosen(self, setting: Setting, method: str) -> pd.DataFrame:
        """The method's runs whose configuration was chosen: one for every seed."""
        runs = self._of[setting, method]
        return runs[runs["chosen"]]

    def estimate(self, setting: Setting, method: str, measure: str) -> Estimate:
        """A measure's mean and standard deviation over seeds."""
        return estimate(self.chosen(setting, method)[measure].tolist())

    def best(self, setting: Setting, method: str) -> Estimate:
        """The smallest suboptimality of all the method's configurations: chosen with hindsight."""
        return estimate(self._of[setting, method].groupby("seed")["suboptimality"].min())

    def seeds_below(self, setting: Setting, method: str, measure: str) -> int:
        """On how many seeds the method is below even, by more than the optimum's error."""
        own, reference = (self.chosen(setting, name)[measure] for name in (method, REFERENCE))
        return int((own.to_numpy() < reference.to_numpy() - 1e-9).sum())

    def optimum(self, setting: Setting, measure: str) -> Estimate:
        """The same of the optimum's model: the column optimum_<measure>."""
        return estimate(self.chosen(setting, REFERENCE)[f"optimum_{measure}"])

    def violations(self) -> list[str]:
        """A line for every run below the optimum, which no model can be: a bug."""
        return [
            f"{run['setting']}, seed {run['seed']}, {run['method']} ({run['configuration']}): "
            f"{measure} {run[measure]:.3g} is below the optimum (error at most "
            f"{run['optimum_error']:.1g})"
            for measure in ("suboptimality", "excess", "last")
            for _, run in self.runs[
                self.runs[measure] < -self.runs["optimum_error"] - _ROUNDING
            ].iterrows()
        ]
