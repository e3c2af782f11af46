"""The tables of the study: Markdown to read, CSV for every number and every run."""

from collections.abc import Sequence
from dataclasses import astuple, fields

from robustmd.report.estimate import Estimate
from robustmd.studies.files import csv_text, markdown_table, signed
from robustmd.studies.planted.domains import Setting
from robustmd.studies.planted.factors import BASE, NOISE
from robustmd.studies.planted.methods import Method
from robustmd.studies.planted.results import Results
from robustmd.studies.planted.runs import Run

MEASURES = ("suboptimality", "excess", "test", "clean", "weight", "last")
_SETTING = [field.name for field in fields(Setting)]
_RUN = [field.name for field in fields(Run)]


def to_markdown(results: Results) -> str:
    """Worst case and worst excess at every factor's end, the noisy domain, and the budget."""
    parts = [
        "# Planted domains: how far from the worst case's optimum",
        _caption(results),
        "## Worst-case loss above its optimum, max_k f_k(w) − F*",
        _ends_table(results, "suboptimality"),
        "The same, had each seed's configuration been chosen by this very number:",
        _ends_table(results, "best"),
        "## Worst excess above its optimum, max_k (f_k(w) − f*_k) − G*",
        _ends_table(results, "excess"),
        *_noise_part(results),
        "## The budget, and what was chosen",
        _budget_table(results),
    ]
    return "\n\n".join(parts) + "\n"


def to_csv(results: Results) -> str:
    """One line a factor, level, method and measure: mean, deviation, 95 % interval, seeds."""
    rows = []
    for factor in results.factors:
        for value, setting in factor.levels:
            for method in results.methods:
                for measure in MEASURES:
                    found = results.estimate(setting, method.name, measure)
                    half = found.spread("ci95") or float("nan")
                    below = results.seeds_below(setting, method.name, measure)
                    names = [factor.name, value, method.name, measure]
                    interval = [found.mean - half, found.mean + half]
                    rows.append([*names, found.mean, found.std, *interval, found.n, below])
    head = "factor level method measure mean std ci95_low ci95_high seeds seeds_below_even"
    return csv_text(head.split(), rows)


def runs_csv(results: Results) -> str:
    """One line a run, the chosen ones marked, with its setting and the optimum of its cell."""
    rows = (
        [*astuple(cell.setting), cell.seed, cell.optimum, cell.error, *astuple(run)]
        for cell in results.cells
        for run in cell.runs
    )
    return csv_text([*_SETTING, "seed", "optimum", "optimum_error", *_RUN], rows)


def _caption(results: Results) -> str:
    return (
        f"Nats, on all training examples; mean ± sample standard deviation over n = "
        f"{len(results.seeds)} seeds; in brackets on how many of them it is below even. "
        f"{results.iterations:,} iterations. Each method has {results.methods[0].budget} "
        "configurations; the one with the smallest worst-case loss on the seed's validation draw "
        "is shown, also where the excess is. F* and G* are exact within "
        f"{results.largest_error:.0e}."
    )


def _ends_table(results: Results, measure: str) -> str:
    columns = [("base", BASE)] if _has(results, BASE) else []
    columns += [
        (f"{factor.name} {factor.levels[-1][0]:g}", setting)
        for factor, setting in ((factor, factor.levels[-1][1]) for factor in results.factors)
    ]
    rows = [
        [method.name] + [_cell(results, setting, method.name, measure) for _, setting in columns]
        for method in results.methods
    ]
    return _markdown(["method", *(name for name, _ in columns)], rows)


def _cell(results: Results, setting: Setting, method: str, measure: str) -> str:
    if measure == "best":
        return _text(results.best(setting, method), 4)
    below = results.seeds_below(setting, method, measure)
    return f"{_text(results.estimate(setting, method, measure), 4)} ({below})"


def _noise_part(results: Results) -> list[str]:
    factor = next((one for one in results.factors if one.name == NOISE.name), None)
    if factor is None:
        return []
    share, setting = factor.levels[-1]
    rows = [
        [
            method.name,
            *(
                _noise_cell(results, setting, method, measure)
                for measure in ("weight", "suboptimality", "excess", "test", "clean")
            ),
        ]
        for method in results.methods
    ]
    optimum = [_text(results.optimum(setting, name), 3) for name in ("weight", "test", "clean")]
    rows.append(["optimum F*", optimum[0], "0", "", *optimum[1:]])
    head = ["method", "mean weight of the noisy domain", "worst-case loss − F*"]
    head += ["worst excess − G*", "worst-case test loss", "without flipped labels"]
    return [f"## A domain with {share:.0%} of its labels flipped", _markdown(head, rows)]


def _noise_cell(results: Results, setting: Setting, method: Method, measure: str) -> str:
    if measure == "weight" and method.example().signed:
        return "–"  # no distribution: its weights have no bound
    return _text(results.estimate(setting, method.name, measure), 3)


def _budget_table(results: Results) -> str:
    rows = []
    for method in results.methods:
        counts = results.choices(method.name)
        words = [method.describe(c) for c in range(method.budget)]
        chosen = "; ".join(f"{word}: {counts[word]}" for word in words)
        rows.append([method.name, str(method.budget), chosen])
    total = len(results.cells)
    return _markdown(["method", "configurations", f"chosen how often, of {total}"], rows)


def _has(results: Results, setting: Setting) -> bool:
    return any(cell.setting == setting for cell in results.cells)


def _text(value: Estimate, decimals: int) -> str:
    mean = signed(value.mean, decimals)
    return mean if value.std is None else f"{mean} ± {value.std:.{decimals}f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(head, ["---"] + ["---:"] * (len(head) - 1), rows)
