"""The table: a measured slope beside a proved rate, as Markdown, LaTeX (booktabs) and CSV."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from robustmd.studies.command import markdown_table, signed
from robustmd.studies.theory.experiments import Experiment, Measure

LEVEL = 0.95
_TEX = {
    "‖∇L‖²": r"$\|\nabla L\|^2$",
    "‖∇F‖²": r"$\|\nabla F\|^2$",
    "p-gap": r"$p$-gap",
    "T^(-1/2)": "$T^{-1/2}$",
    "T^(-1/3)": "$T^{-1/3}$",
    "(log T/T)^(1/2)": r"$\sqrt{\log T/T}$",
    "log T/T": r"$\log T/T$",
    "R(c*)/T": "$R(c^*)/T$",
    "R_KL(c*)/T": r"$R_\mathrm{KL}(c^*)/T$",
    "none (printed: T^(-1/2))": "none",
    "L2, c = c*": "L2, $c = c^*$",
    "KL, c = c*": "KL, $c = c^*$",
    "L2, c = 0": "L2, $c = 0$",
    "nothing proved": "--",
}


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

    @property
    def cells(self) -> list[str]:
        """In words, as the tables have it."""
        return [
            *(*self.experiment.names, self.measure.name),
            f"{self.values.iloc[-1].mean():.3g}",
            self.measure.rate_name,
            _number(self.rate_slope),
            _number(self.slope),
            f"[{_number(self.low)}, {_number(self.high)}]",
            "–" if math.isnan(self.share) else f"{self.share:.2g}",
            self.verdict,
        ]


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


def to_markdown(rows: Sequence[Row]) -> str:
    """A pipe table under its caption."""
    head = ["result", "p by", "problem", "measure", "at largest T", "proved rate", "its slope"]
    head += ["measured slope", "95 % interval", "share of bound", "verdict"]
    table = markdown_table(head, (row.cells for row in rows), numbers=range(4, 10))
    return f"{_caption(rows)}\n\n{table}\n"


def to_latex(rows: Sequence[Row]) -> str:
    """A `table` environment as wide as a page; a smaller line says who, where and the interval.

    It compiles in a document that has `\\usepackage{booktabs}`.
    """
    caption = _caption(rows).replace("%", r"\%")
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{caption}}}\smallskip",
        r"\begin{tabular}{lllrrrl}",
        r"\toprule",
        r"Result & Measure & Rate & Its slope & Slope & Share & Verdict \\",
        r"\midrule",
        *(line for row in rows for line in _tex_lines(row)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _tex_lines(row: Row) -> tuple[str, str]:
    cells = [_TEX.get(cell, cell).replace("−", "$-$").replace("–", "--") for cell in row.cells]
    result, adversary, problem, measure, _, rate, rate_slope, slope, interval, share, verdict = (
        cells
    )
    first = " & ".join((result, measure, rate, rate_slope, slope, share, verdict))
    small = rf"\multicolumn{{4}}{{l}}{{\scriptsize {adversary}, {problem}}} & "
    small += rf"\multicolumn{{3}}{{l}}{{\scriptsize {interval}}}"
    return rf"{first} \\", rf"{small} \\"


def to_csv(rows: Sequence[Row]) -> str:
    """One line a row, with every digit; `mean_T=<T>` is the mean over seeds at that T."""
    names = "result adversary problem measure rate rate_slope slope slope_low slope_high"
    names += " share_of_bound verdict seeds"
    means = [f"mean_T={T}" for T in rows[0].values.index]
    lines = [
        [
            *(*row.experiment.names, row.measure.name, row.measure.rate_name, row.rate_slope),
            *(row.slope, row.low, row.high, row.share, row.verdict),
            *(row.values.shape[1], *row.values.to_numpy().mean(axis=1)),
        ]
        for row in rows
    ]
    return pd.DataFrame(lines, columns=[*names.split(), *means]).to_csv(index=False)


def runs_csv(results: Sequence[tuple[Experiment, pd.DataFrame]]) -> str:
    """One line a run: what the table's numbers were made of."""
    names = ["result", "adversary", "problem"]
    columns = "T seed gradient p_gap regret regret_bound mu sigma gamma radius duality_gap"
    named = [runs.assign(**dict(zip(names, e.names, strict=True))) for e, runs in results]
    return pd.concat(named).to_csv(index=False, columns=[*names, *columns.split()])


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


def _number(value: float) -> str:
    """ "−0.500"; an en dash where there is none."""
    return "–" if math.isnan(value) else signed(value, 3)
