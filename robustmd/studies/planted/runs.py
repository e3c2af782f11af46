"""One cell of the study, a seed of a setting: all configurations trained, measured, selected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robustmd.registry import METHODS
from robustmd.studies.planted.descent import Task, Trained, train
from robustmd.studies.planted.domains import Setting, Splits, draw
from robustmd.studies.planted.methods import Method
from robustmd.studies.planted.optimum import (
    Optimum,
    cross_entropies,
    solve_optimum,
    training_losses,
)

_ROUNDING = 1e-12  # of sums of hundreds of numbers in float64


@dataclass(frozen=True)
class Run:
    """One configuration of one method; losses in nats.

    Attributes:
        method, configuration: its name, and its own value and learning rate in words.
        chosen: whether its `validation` is the smallest of the method's configurations.
        validation: max_k cross entropy on the validation draw; inf where the run diverged.
        suboptimality: max_k f_k(w) − F* on the training set.
        excess: max_k (f_k(w) − f*_k) − G* on the training set.
        test, clean: max_k cross entropy on the test set, with and without flipped labels.
        weight: p̄_1, the mean weight of domain 1.
        last: `suboptimality` of w_T; another model than the rest's where w̄ is what is returned.
    """

    method: str
    configuration: str
    chosen: bool
    validation: float
    suboptimality: float
    excess: float
    test: float
    clean: float
    weight: float
    last: float


@dataclass(frozen=True)
class Cell:
    """One seed of one setting.

    Attributes:
        error: a bound on the error of F* and G*, from the solver's certificate.
        optimum: F* itself.
        optimum_test, optimum_clean: `Run.test` and `Run.clean` of the optimum's model w*.
        optimum_weight: p*_1.
        runs: all configurations of all methods.
    """

    setting: Setting
    seed: int
    error: float
    optimum: float
    optimum_test: float
    optimum_clean: float
    optimum_weight: float
    runs: tuple[Run, ...]

    def chosen(self, method: str) -> Run:
        """The method's run whose configuration was chosen."""
        return next(run for run in self.runs if run.method == method and run.chosen)

    def violations(self) -> list[str]:
        """A line for every run below the optimum, which no model can be: a bug."""
        limit = -self.error - _ROUNDING
        return [
            f"{self.setting}, seed {self.seed}, {run.method} ({run.configuration}): {measure} "
            f"{getattr(run, measure):.3g} is below the optimum (error at most {self.error:.1g})"
            for run in self.runs
            for measure in ("suboptimality", "excess", "last")
            if getattr(run, measure) < limit
        ]


def run_cells(
    settings: Sequence[Setting], seeds: Sequence[int], methods: Sequence[Method], iterations: int
) -> list[Cell]:
    """Every setting with every seed; all settings of one number of domains."""
    drawn = [(setting, seed, draw(setting, seed)) for setting in settings for seed in seeds]
    tasks = [
        Task(setting, seed, splits.train, solve_optimum(splits.train))
        for setting, seed, splits in drawn
    ]
    trained = train(tasks, methods, iterations)
    return [
        _cell(task, splits, i, methods, trained)
        for i, (task, (_, _, splits)) in enumerate(zip(tasks, drawn, strict=True))
    ]


def _cell(
    task: Task, splits: Splits, i: int, methods: Sequence[Method], trained: Sequence[Trained]
) -> Cell:
    best = task.optimum.worst_case
    w = best.model[None]
    runs = [
        run
        for method, became in zip(methods, trained, strict=True)
        for run in _runs(method, became, i, splits, task.optimum)
    ]
    return Cell(
        setting=task.setting,
        seed=task.seed,
        error=task.optimum.error,
        optimum=best.upper,
        optimum_test=float(cross_entropies(splits.test, w).max()),
        optimum_clean=float(cross_entropies(splits.clean, w).max()),
        optimum_weight=float(best.weights[0]),
        runs=tuple(runs),
    )


def _runs(method: Method, became: Trained, i: int, splits: Splits, optimum: Optimum) -> list[Run]:
    """The method's configurations on task number i."""
    returned = became.mean[i] if METHODS.flag(method.name, "averages") else became.last[i]
    f = training_losses(splits.train, returned)  # [C, K]; NaN or inf where it diverged
    validation = _finite(cross_entropies(splits.validation, returned).max(axis=1))
    measures = {
        "validation": validation,
        "suboptimality": _finite(f.max(axis=1)) - optimum.worst_case.upper,
        "excess": _finite((f - optimum.alone).max(axis=1)) - optimum.worst_excess.upper,
        "test": _finite(cross_entropies(splits.test, returned).max(axis=1)),
        "clean": _finite(cross_entropies(splits.clean, returned).max(axis=1)),
        "weight": became.mean_weights[i, :, 0],
        "last": _finite(training_losses(splits.train, became.last[i]).max(axis=1))
        - optimum.worst_case.upper,
    }
    best = int(validation.argmin())
    return [
        Run(
            method.name,
            method.describe(c),
            c == best,
            **{name: float(values[c]) for name, values in measures.items()},
        )
        for c in range(method.budget)
    ]


def _finite(losses: np.ndarray) -> np.ndarray:
    """Losses with inf for what diverged."""
    return np.where(np.isfinite(losses), losses, math.inf)
