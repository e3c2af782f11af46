"""The convergence table: Markdown, LaTeX (booktabs) and CSV, and every run's values in a CSV."""

import math
from collections.abc import Sequence
from dataclasses import fields

from robustmd.studies.files import csv_text, markdown_table, signed
from robustmd.studies.theory.results import Result, Row
from robustmd.studies.theory.runs import Outcome

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
_SCALARS = [f.name for f in fields(Outcome) if f.name not in ("T", "mean_model", "mean_weights")]


def caption(results: Sequence[Result]) -> str:
    """What the numbers are: for every format the same words."""
    horizons, n = results[0].horizons, len(results[0].seeds)
    return (
        f"Measured slope on log axes over T = {horizons[0]:,} to {horizons[-1]:,} "
        f"({len(horizons)} values, n = {n} seeds) of the mean over seeds, with its 95 % interval "
        "(jackknife over seeds, Student's t), beside the slope of the proved rate over the same T, "
        "log factors included. A rate is an upper bound: it holds when the interval's upper end is "
        "at most the rate's slope. Share: the largest mean measure divided by the proved bound."
    )


def to_markdown(rows: Sequence[Row]) -> str:
    """A pipe table under its caption."""
    head = ["result", "p by", "problem", "measure", "at largest T", "proved rate", "its slope"]
    head += ["measured slope", "95 % interval", "share of bound", "verdict"]
    align = ["---"] * 4 + ["---:"] * 6 + ["---"]
    text = caption([row.result for row in rows])
    return f"{text}\n\n{markdown_table(head, align, map(_cells, rows))}\n"


def to_latex(rows: Sequence[Row]) -> str:
    """A `table` environment as wide as a page; a smaller line says who, where and the interval.

    It compiles in a document that has `\\usepackage{booktabs}`.
    """
    text = caption([row.result for row in rows]).replace("%", r"\%")
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{text}}}\smallskip",
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


def to_csv(rows: Sequence[Row]) -> str:
    """One line a row, with every digit; `mean_T=<T>` is the mean over seeds at that T."""
    names = "result adversary problem measure rate rate_slope slope slope_low slope_high"
    names += " share_of_bound verdict seeds"
    head = [*names.split(), *(f"mean_T={T}" for T in rows[0].result.horizons)]
    lines = [
        [
            *_names(row.result),
            *(row.measure.name, row.measure.rate_name, row.rate_slope),
            *(row.slope.value, row.slope.low, row.slope.high, row.bound_share, row.verdict),
            *(len(row.result.seeds), *map(float, row.values.mean(axis=1))),
        ]
        for row in rows
    ]
    return csv_text(head, lines)


def runs_csv(results: Sequence[Result], rows: Sequence[Row]) -> str:
    """One line a run: what the table's numbers were made of."""
    gaps = {
        (T, seed): value
        for row in rows
        if row.measure.name == "duality gap"
        for T, values in zip(row.result.horizons, row.values, strict=True)
        for seed, value in zip(row.result.seeds, values, strict=True)
    }
    lines = [
        [
            *(*_names(result), run.T, seed),
            *(getattr(run, name) for name in _SCALARS),
            gaps.get((run.T, seed)) if result.experiment.result == "Lemma 1" else None,
        ]
        for result in results
        for seed, run in result.all_runs()
    ]
    return csv_text(
        ["result", "adversary", "problem", "T", "seed", *_SCALARS, "duality_gap"], lines
    )


def _names(result: Result) -> list[str]:
    experiment = result.experiment
    return [experiment.result, experiment.adversary_name, experiment.problem_name]


def _cells(row: Row) -> list[str]:
    slope = row.slope
    return [
        *_names(row.result),
        row.measure.name,
        f"{row.values[-1].mean():.3g}",
        row.measure.rate_name,
        _number(row.rate_slope),
        _number(slope.value),
        f"[{_number(slope.low)}, {_number(slope.high)}]",
        "–" if row.bound_share is None else f"{row.bound_share:.2g}",
        row.verdict,
    ]


def _tex_lines(row: Row) -> tuple[str, str]:
    cells = [_tex(cell) for cell in _cells(row)]
    result, adversary, problem, measure, _, rate, rate_slope, slope, interval, share, verdict = (
        cells
    )
    first = " & ".join((result, measure, rate, rate_slope, slope, share, verdict))
    small = rf"\multicolumn{{4}}{{l}}{{\scriptsize {adversary}, {problem}}} & "
    small += rf"\multicolumn{{3}}{{l}}{{\scriptsize {interval}}}"
    return rf"{first} \\", rf"{small} \\"


def _number(value: float | None) -> str:
    """ "−0.500"; an en dash where there is none."""
    return "–" if value is None or math.isnan(value) else signed(value, 3)


def _tex(cell: str) -> str:
    return _TEX.get(cell, cell).replace("−", "$-$").replace("–", "--")
