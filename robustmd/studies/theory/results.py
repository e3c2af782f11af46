"""From runs to rows: a measured slope beside a proved rate, and what to make of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from robustmd.studies.theory.experiments import Experiment, Measure
from robustmd.studies.theory.runs import Outcome

_ROUNDING = 1e-12  # relative: sums of up to 10⁵ numbers in float64
LEVEL = 0.95


@dataclass(frozen=True)
class Slope:
    """d log E[measure]/d log T, and the ends of its 95 % interval; NaN where a mean is not > 0."""

    value: float
    low: float
    high: float


def log_slope(horizons: Sequence[int], values: Sequence[float] | np.ndarray) -> float:
    """The least-squares slope of log values on log T; NaN unless all values are > 0."""
    if np.min(values) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(horizons), np.log(values), 1)[0])


def measured_slope(horizons: Sequence[int], values: np.ndarray) -> Slope:
    """The slope of the mean over seeds: the theorems are about expectations.

    The interval is the jackknife's: with s_i the slope without seed i and s̄ their mean,
    slope ± t_{n−1} · sqrt((n−1)/n Σ (s_i − s̄)²). Batches of one seed are alike for every T, so
    that seeds, not single runs, are the independent units.

    Args:
        horizons: the T's, ≥ 2 of them.
        values: [len(horizons), n], a column a seed, n ≥ 2.
    """
    n = values.shape[1]
    slope = log_slope(horizons, values.mean(axis=1))
    left_out = np.array(
        [log_slope(horizons, np.delete(values, i, axis=1).mean(axis=1)) for i in range(n)]
    )
    spread = np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum())
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * spread)
    return Slope(slope, slope - half, slope + half)


@dataclass(frozen=True)
class Result:
    """An experiment's runs, [horizon][seed]."""

    experiment: Experiment
    seeds: tuple[int, ...]
    outcomes: list[list[Outcome]]

    @property
    def horizons(self) -> list[int]:
        return [row[0].T for row in self.outcomes]

    @property
    def title(self) -> str:
        return f"{self.experiment.result} ({self.experiment.adversary_name})"

    def all_runs(self) -> Iterator[tuple[int, Outcome]]:
        """(seed, outcome) of every run."""
        for row in self.outcomes:
            yield from zip(self.seeds, row, strict=True)

    def regret_violations(self) -> list[str]:
        """A line for every run whose measured regret exceeds what is proved at its own μ_obs.

        The bound holds for every realisation: such a line is a bug in an update or in a bound.
        """
        return [
            f"{self.title} on {self.experiment.problem_name}, T={run.T}, seed={seed}: regret "
            f"{run.regret:.6g} exceeds its bound {run.regret_bound:.6g} at μ_obs {run.mu:.6g}"
            for seed, run in self.all_runs()
            if run.regret is not None
            and run.regret_bound is not None
            and not run.regret <= run.regret_bound * (1 + _ROUNDING)
        ]

    def regret_checks(self) -> int:
        """How many runs have a proved bound on their regret."""
        return sum(run.regret_bound is not None for _, run in self.all_runs())

    def broken_assumptions(self) -> list[str]:
        """A line for every constant that a run exceeded."""
        constants = self.experiment.constants
        limits = {"sigma": constants.sigma, "gamma": constants.gamma, "radius": constants.radius}
        lines = []
        for name, limit in limits.items():
            seen = max(getattr(run, name) for _, run in self.all_runs())
            if limit is not None and seen > limit:
                lines.append(f"{self.title}: {name} reached {seen:.4g}, assumed {limit:.4g}")
        return lines


@dataclass(frozen=True)
class Row:
    """One measure of one experiment.

    Attributes:
        values: [horizons, seeds].
        slope: of the mean over seeds.
        rate_slope: the slope of the proved rate fitted over the same T, log factors included; None
            where nothing is proved.
        bound_share: the largest mean measure/proved bound over T; None likewise.
    """

    result: Result
    measure: Measure
    values: np.ndarray
    slope: Slope
    rate_slope: float | None
    bound_share: float | None

    @property
    def verdict(self) -> str:
        """ "holds": the interval's upper end is at most the rate's slope: rates are upper bounds.

        To fit log(measure/log factor) against the bare exponent would be the same comparison.
        """
        if self.rate_slope is None:
            return "nothing proved"
        return "holds" if self.slope.high <= self.rate_slope else "not shown"


def rows_of(result: Result) -> list[Row]:
    """The rows of an experiment, one a measure."""
    return [_row(result, measure) for measure in result.experiment.measures]


def _row(result: Result, measure: Measure) -> Row:
    horizons = result.horizons
    values = np.array([[measure.value(run) for run in row] for row in result.outcomes])
    share = None
    if measure.bound is not None:
        bounds = [measure.bound(T) for T in horizons]
        share = float(np.max(values.mean(axis=1) / bounds))
    rate = (
        None if measure.rate is None else log_slope(horizons, [measure.rate(T) for T in horizons])
    )
    return Row(result, measure, values, measured_slope(horizons, values), rate, share)
