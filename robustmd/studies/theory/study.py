"""The whole study: every experiment's runs, checks, and the files of the report."""

import math
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pandas as pd

from robustmd.adversary.schedules import optimal_c, regret_bound
from robustmd.studies import figures
from robustmd.studies.command import Findings, Order, images, say
from robustmd.studies.parallel import one_thread, side_by_side
from robustmd.studies.saddle import duality_gap
from robustmd.studies.theory.experiments import Experiment, experiments
from robustmd.studies.theory.problems import Logistic
from robustmd.studies.theory.table import row_of, runs_csv, to_csv, to_latex, to_markdown

HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000)  # two decades
QUICK_HORIZONS = (100, 316, 1_000)
T, MU, LAM = 1_000_000, 100.0, 1.0  # of the regret bound's curve
_ROUNDING = 1e-12  # relative: sums of up to 10⁵ numbers in float64


def find(order: Order) -> Findings:
    """Runs everything. Violated: a run's regret that exceeds its proved bound, which is a bug."""
    results, rows = [], []
    with one_thread():
        for experiment, runs in run_all(QUICK_HORIZONS if order.quick else HORIZONS, order):
            results.append((experiment, runs))
            found = [row_of(experiment, measure, runs) for measure in experiment.measures]
            rows += found
            for row in found:
                rate = "–" if math.isnan(row.rate_slope) else f"{row.rate_slope:.3f}"
                slope = f"{row.slope:.3f} [{row.low:.3f}, {row.high:.3f}]"
                what = f"{_title(experiment)}, {row.measure.name}"
                say(f"{what}: slope {slope}, rate {rate}: {row.verdict}")
    broken = [line for result in results for line in broken_assumptions(*result)]
    violations = [line for result in results for line in regret_violations(*result)]
    checks = sum(int(runs["regret_bound"].count()) for _, runs in results)
    curve, summary = regret_curve()
    title = f"T = {T:,}, μ = {MU:g}, λ = {LAM:g}"
    words = [
        f"regret bound: {summary}",
        "assumptions exceeded:" if broken else "σ, γ and R bounded what every run met",
        *(f"  {line}" for line in broken),
        f"regret at most its bound at μ_obs in {checks - len(violations)} of {checks} runs",
    ]
    files = {
        "regret_bound.csv": curve.to_csv(index=False),
        "convergence.md": to_markdown(rows),
        "convergence.tex": to_latex(rows),
        "convergence.csv": to_csv(rows),
        "runs.csv": runs_csv(results),
        **images({"regret_bound": figures.regret_bound(curve, title)}),
        **images({"convergence": figures.convergence(rows)}),
    }
    return Findings(files, words, violations)


def run_all(horizons: Sequence[int], order: Order) -> Iterator[tuple[Experiment, pd.DataFrame]]:
    """Every experiment with its runs, see `Runs.run`, in order.

    An experiment cannot travel between processes, for it holds functions. Each process makes all
    of them anew, alike, and is told which to run.
    """
    orders = [(i, tuple(horizons), tuple(order.seeds)) for i in range(len(_experiments()))]
    yield from zip(_experiments(), side_by_side(_run, orders, order.workers), strict=True)


@cache
def _experiments() -> list[Experiment]:
    return experiments()


def _run(index: int, horizons: Sequence[int], seeds: Sequence[int]) -> pd.DataFrame:
    """The runs of an experiment, with the duality gap of (W̄, p̄) where the problem is convex."""
    runs = _experiments()[index].runs
    found = runs.run(horizons, seeds)
    if isinstance(runs.problem, Logistic):
        losses = runs.problem.losses_and_jacobian
        means = zip(found["mean_model"], found["mean_weights"], strict=True)
        with one_thread():
            found["duality_gap"] = [duality_gap(losses, W, p) for W, p in means]
    return found


def regret_violations(experiment: Experiment, runs: pd.DataFrame) -> list[str]:
    """A line for every run whose measured regret exceeds what is proved at its own μ_obs.

    The bound holds for every realisation: such a line is a bug in an update or in a bound.
    """
    holds = runs["regret"] <= runs["regret_bound"] * (1 + _ROUNDING)
    return [
        f"{_title(experiment)} on {experiment.names[2]}, T={run.T}, seed={run.seed}: regret "
        f"{run.regret:.6g} exceeds its bound {run.regret_bound:.6g} at μ_obs {run.mu:.6g}"
        for run in runs[~holds & runs["regret_bound"].notna()].itertuples()
    ]


def broken_assumptions(experiment: Experiment, runs: pd.DataFrame) -> list[str]:
    """A line for every constant that a run exceeded."""
    lines = []
    for name in ("sigma", "gamma", "radius"):
        seen, limit = runs[name].max(), getattr(experiment.constants, name)
        if limit is not None and seen > limit:
            lines.append(f"{_title(experiment)}: {name} reached {seen:.4g}, assumed {limit:.4g}")
    return lines


def _title(experiment: Experiment) -> str:
    return f"{experiment.result} ({experiment.adversary_name})"


def regret_curve() -> tuple[pd.DataFrame, str]:
    """The paper's illustration of Corollary 1: R(c) = λc + (μ²/2λ)(ln(T/c + 1) + 1), and in words.

    c goes from 1 to 10⁵ on a log grid that holds c*, which is noted; the first line is R(0), of
    the plain step 1/(λt).
    """
    best_c = optimal_c(MU, LAM, T)
    best, plain = (regret_bound(c, MU, LAM, T) for c in (best_c, 0.0))
    grid = np.sort(np.append(np.geomspace(1.0, 1e5, 200), best_c))
    lines: list[tuple[float, float, str]] = [(0, plain, "plain step 1/(lam t)")]
    for c in map(float, grid):
        lines.append((c, regret_bound(c, MU, LAM, T), "c*" if c == best_c else ""))
    words = f"T = {T:g}, μ = {MU:g}, λ = {LAM:g}: c* = {best_c:.4f}, R(c*) = {best:.3f}, "
    words += f"plain step {plain:.3f}, ratio {best / plain:.4f}"
    return pd.DataFrame(lines, columns=["c", "regret_bound", "note"], dtype=object), words
