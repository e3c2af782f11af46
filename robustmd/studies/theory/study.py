"""The whole study: every experiment's runs, checks, measured slopes beside proved rates, and the
files of the report."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from robustmd.adversary.schedules import optimal_c, regret_bound
from robustmd.report.renderers import FILES
from robustmd.report.sheet import NOTHING, Cell, Field, Sheet, field, make_sheet
from robustmd.studies import Findings, Order, figures, say
from robustmd.studies.parallel import one_thread, side_by_side
from robustmd.studies.saddle import duality_gap
from robustmd.studies.theory.experiments import Experiment, Measure, experiments
from robustmd.studies.theory.problems import Logistic

HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000)  # two decades
QUICK_HORIZONS = (100, 316, 1_000)
T, MU, LAM = 1_000_000, 100.0, 1.0  # of the regret bound's curve
_ROUNDING = 1e-12  # relative: sums of up to 10⁵ numbers in float64
LEVEL = 0.95


@dataclass(frozen=True)
class Row:
    """One measure of one experiment, beside what is proved of it.

    Attributes:
        values: of the measure, a line for every T, a column for every seed.
        slope, low, high: d log E[measure]/d log T and its 95 % interval; NaN where a mean is not
            > 0.
        rate_slope: the slope of the proved rate fitted over the same T, log factors included; NaN
            where nothing is proved.
        share: the largest mean measure/proved bound over T; NaN likewise.
    """

    experiment: Experiment
    measure: Measure
    values: pd.DataFrame
    slope: float
    low: float
    high: float
    rate_slope: float
    share: float

    @property
    def verdict(self) -> str:
        """ "holds": the interval's upper end is at most the rate's slope: rates are upper bounds.

        To fit log(measure/log factor) against the bare exponent would be the same comparison.
        """
        if math.isnan(self.rate_slope):
            return "nothing proved"
        return "holds" if self.high <= self.rate_slope else "not shown"


def find(order: Order) -> Findings:
    """Runs everything. Violated: a run's regret that exceeds its proved bound, which is a bug."""
    results, rows = [], []
    for experiment, runs in run_all(QUICK_HORIZONS if order.quick else HORIZONS, order):
        results.append((experiment, runs))
        for measure in experiment.measures:
            row = row_of(experiment, measure, runs)
            rows.append(row)
            rate = NOTHING if math.isnan(row.rate_slope) else f"{row.rate_slope:.3f}"
            slope = f"{row.slope:.3f} [{row.low:.3f}, {row.high:.3f}]"
            what = f"{_title(experiment)}, {measure.name}"
            say(f"{what}: slope {slope}, rate {rate}: {row.verdict}")
    broken = [line for result in results for line in broken_assumptions(*result)]
    violations = [line for result in results for line in regret_violations(*result)]
    checks = sum(int(runs["regret_bound"].count()) for _, runs in results)
    curve, summary = regret_curve()
    sheet, title = convergence_sheet(rows), f"T = {T:,}, μ = {MU:g}, λ = {LAM:g}"
    words = [
        f"regret bound: {summary}",
        "assumptions exceeded:" if broken else "σ, γ and R bounded what every run met",
        *(f"  {line}" for line in broken),
        f"regret at most its bound at μ_obs in {checks - len(violations)} of {checks} runs",
    ]
    files: dict[str, str | bytes] = {
        "regret_bound.csv": curve.to_csv(index=False),
        **{f"convergence.{kind}": render(sheet) for kind, render in FILES.items()},
        "runs.csv": runs_csv(results),
        **figures.images(
            regret_bound=figures.regret_bound(curve, title), convergence=figures.convergence(rows)
        ),
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
    with one_thread():
        return experiments()


def _run(index: int, horizons: Sequence[int], seeds: Sequence[int]) -> pd.DataFrame:
    """The runs of an experiment, with the duality gap of (W̄, p̄) where the problem is convex."""
    runs = _experiments()[index].runs
    found = runs.run(horizons, seeds)
    if isinstance(runs.problem, Logistic):
        losses = runs.problem.losses_and_jacobian
        means = zip(found["mean_model"], found["mean_weights"], strict=True)
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
    grid = np.sort(np.append(np.geomspace(1.0, 1e5, 200), best_c)).tolist()
    lines = [(c, regret_bound(c, MU, LAM, T), "c*" if c == best_c else "") for c in grid]
    lines.insert(0, (0, plain, "plain step 1/(lam t)"))
    words = f"T = {T:g}, μ = {MU:g}, λ = {LAM:g}: c* = {best_c:.4f}, R(c*) = {best:.3f}, "
    words += f"plain step {plain:.3f}, ratio {best / plain:.4f}"
    return pd.DataFrame(lines, columns=["c", "regret_bound", "note"], dtype=object), words


def row_of(experiment: Experiment, measure: Measure, runs: pd.DataFrame) -> Row:
    """What the runs say of a measure."""
    values = runs.pivot(index="T", columns="seed", values=measure.column)
    T = values.index.tolist()
    rate, share = math.nan, math.nan
    if measure.rate is not None:
        rate = log_slope(T, [measure.rate(t) for t in T])
    if measure.bound is not None:
        share = float((values.mean(axis=1) / [measure.bound(t) for t in T]).max())
    return Row(experiment, measure, values, *measured_slope(T, values.to_numpy()), rate, share)


def log_slope(horizons: Sequence[int], values: Sequence[float] | np.ndarray) -> float:
    """The least-squares slope of log values on log T; NaN unless all values are > 0."""
    if np.min(values) <= 0:
        return math.nan
    return float(np.polyfit(np.log(horizons), np.log(values), 1)[0])


def measured_slope(horizons: Sequence[int], values: np.ndarray) -> tuple[float, float, float]:
    """The slope of the mean over seeds, for the theorems are about expectations; low and high end.

    The interval is the jackknife's: with s_i the slope without seed i and s̄ their mean,
    slope ± t_{n−1} · sqrt((n−1)/n Σ (s_i − s̄)²). Batches of one seed are alike for every T, so
    that seeds, not single runs, are the independent units.

    Args:
        horizons: the T's, ≥ 2 of them.
        values: [len(horizons), n], a column for every seed, n ≥ 2.
    """
    n = values.shape[1]
    slope = log_slope(horizons, values.mean(axis=1))
    left_out = np.array(
        [log_slope(horizons, np.delete(values, i, axis=1).mean(axis=1)) for i in range(n)]
    )
    spread = np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum())
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * spread)
    return slope, slope - half, slope + half


def convergence_sheet(rows: Sequence[Row]) -> Sheet:
    """A row for each measure; a CSV file has its mean over seeds at every T too."""

    def result(row: Row) -> Cell:
        names = row.experiment.names
        return Cell(names[0], names, f"({', '.join(names[1:])})")

    def slope(row: Row) -> Cell:
        mean, low, high = (_number(value) for value in (row.slope, row.low, row.high))
        ends = f"[{low.text}, {high.text}]"
        return Cell(mean.text, mean.values + low.values + high.values, ends)

    def mean_at(T: int) -> Field:
        return field(None, lambda row: float(row.values.loc[T].mean()), f"mean_T={T}")

    fields = [
        field("result", result, "result", "adversary", "problem"),
        field("measure", lambda row: row.measure.name, "measure"),
        field("at largest T", lambda row: f"{row.values.iloc[-1].mean():.3g}", kind="number"),
        field("proved rate", lambda row: row.measure.rate_name, "rate"),
        field("its slope", lambda row: _number(row.rate_slope), "rate_slope", kind="number"),
        field("measured slope", slope, "slope", "slope_low", "slope_high"),
        field("share", lambda row: _number(row.share, ".2g"), "share_of_bound", kind="number"),
        field("verdict", lambda row: row.verdict, "verdict"),
        field(None, lambda row: row.values.shape[1], "seeds"),
        *map(mean_at, rows[0].values.index),
    ]
    return make_sheet("convergence", rows, fields, caption=_caption(rows), letters="tiny")


def _number(value: float, digits: str = ".3f") -> Cell:
    """ "−0.500"; an en dash where there is none."""
    if math.isnan(value):
        return Cell(NOTHING, (None,))
    return Cell(f"{value:{digits}}".replace("-", "−"), (value,))


def _caption(rows: Sequence[Row]) -> str:
    """What the numbers are: for every format the same words."""
    horizons, n = list(rows[0].values.index), rows[0].values.shape[1]
    return (
        f"Measured slope on log axes over T = {horizons[0]:,} to {horizons[-1]:,} "
        f"({len(horizons)} values, n = {n} seeds) of the mean over seeds, with its 95 % interval "
        "(jackknife over seeds, Student's t), beside the slope of the proved rate over the same T, "
        "log factors included. A rate is an upper bound: it holds when the interval's upper end is "
        "at most the rate's slope. Share: the largest mean measure divided by the proved bound."
    )


def runs_csv(results: Sequence[tuple[Experiment, pd.DataFrame]]) -> str:
    """One line for each run: what the table's numbers were made of."""
    names = ["result", "adversary", "problem"]
    columns = "T seed gradient p_gap regret regret_bound mu sigma gamma radius duality_gap"
    named = [runs.assign(**dict(zip(names, e.names, strict=True))) for e, runs in results]
    return pd.concat(named).to_csv(index=False, columns=[*names, *columns.split()])
