"""The whole study: runs, checks, and the tables and figures of the report."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from robustmd.report import renderers
from robustmd.report.estimate import Estimate
from robustmd.report.sheet import NOTHING, field, make_sheet
from robustmd.studies import Findings, Order, figures, say
from robustmd.studies.parallel import side_by_side
from robustmd.studies.planted.domains import BASE, FACTORS, Setting, settings_of
from robustmd.studies.planted.methods import Method, methods_compared
from robustmd.studies.planted.runs import NOT_LISTED, Results, run_cells

ITERATIONS, QUICK_ITERATIONS = 1_000, 15
MEASURES = ("suboptimality", "excess", "test", "clean", "weight", "last")
_LANES = 75  # cells in a job: more would not fit the processor's cache, fewer wait for Python


def find(order: Order) -> Findings:
    """Runs everything. Violated: a run below the optimum, which no model can be."""
    factors = tuple(factor.ends() for factor in FACTORS) if order.quick else FACTORS
    iterations = QUICK_ITERATIONS if order.quick else ITERATIONS
    methods, settings = methods_compared(), settings_of(factors)
    jobs = _jobs(settings, order.seeds, methods, iterations)
    found: list[pd.DataFrame] = []
    done = 0
    for some in side_by_side(run_cells, jobs, order.workers):
        found.append(some)
        done += len(some.drop_duplicates(["setting", "seed"]))
        say(f"{done} of {len(settings) * len(order.seeds)} draws done")
    runs = pd.concat(found, ignore_index=True)
    places = runs["setting"].map(settings.index)
    runs = runs.iloc[np.lexsort((runs["seed"], places))].reset_index(drop=True)
    results = Results(factors, methods, iterations, runs)
    diverged = int(np.isinf(runs["validation"]).sum())
    words = [f"{len(runs):,} runs; optima exact within {runs['optimum_error'].max():.0e}"]
    words += [f"{diverged} runs diverged and could not be chosen"] if diverged else []
    files = {
        "planted.md": to_markdown(results),
        "planted.csv": to_csv(results),
        "runs.csv": runs.drop(columns=NOT_LISTED).to_csv(index=False),
        **figures.images(
            suboptimality=figures.planted(results, "suboptimality"),
            excess=figures.planted(results, "excess"),
            noise=figures.planted_noise(results),
        ),
    }
    return Findings(files, words, results.violations())


def _jobs(settings: Sequence[Setting], seeds: Sequence[int], *rest: object) -> list[Any]:
    """Arguments of `run_cells` for cells that train together: one number of domains, some seeds;
    the largest jobs first."""
    counts = dict.fromkeys(setting.num_domains for setting in settings)
    groups = [[one for one in settings if one.num_domains == K] for K in counts]
    jobs = []
    for alike in sorted(groups, key=len, reverse=True):
        size = max(1, _LANES // len(alike))
        for first in range(0, len(seeds), size):
            jobs.append((alike, seeds[first : first + size], *rest))
    return jobs


def to_csv(results: Results) -> str:
    """One line for each factor, level, method and measure: mean, deviation, interval, seeds."""
    rows = []
    for factor in results.factors:
        for value, setting in factor.levels:
            for method in results.methods:
                for measure in MEASURES:
                    found = results.estimate(setting, method.name, measure)
                    half = found.spread("ci95") or 0.0
                    below = results.seeds_below(setting, method.name, measure)
                    names = [factor.name, value, method.name, measure]
                    interval = [found.mean - half, found.mean + half]
                    rows.append([*names, found.mean, found.std, *interval, found.n, below])
    head = "factor level method measure mean std ci95_low ci95_high seeds seeds_below_even"
    return pd.DataFrame(rows, columns=head.split()).to_csv(index=False)


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
        f"## A domain with {results.noise.levels[-1][0]:.0%} of its labels flipped",
        _noise_table(results),
        "## The budget, and what was chosen",
        _budget_table(results),
    ]
    return "\n\n".join(parts) + "\n"


def _caption(results: Results) -> str:
    return (
        f"Nats, on all training examples; mean ± sample standard deviation over n = "
        f"{results.runs['seed'].nunique()} seeds; in brackets on how many of them it is below "
        f"even. {results.iterations:,} iterations. Each method has "
        f"{len(results.methods[0].configurations())} configurations; the one with the smallest "
        "worst-case loss on the seed's validation draw is shown, also where the excess is. "
        f"F* and G* are exact within {results.runs['optimum_error'].max():.0e}."
    )


def _ends_table(results: Results, measure: str) -> str:
    """The measure at every factor's hardest level; "best": see `Results.best`."""
    columns = {"base": BASE}
    for factor in results.factors:
        value, hardest = factor.levels[-1]
        columns[f"{factor.name} {value:g}"] = hardest

    def cell(setting: Setting, method: str) -> str:
        if measure == "best":
            return _text(results.best(setting, method), 4)
        below = results.seeds_below(setting, method, measure)
        return f"{_text(results.estimate(setting, method, measure), 4)} ({below})"

    rows = [
        [method.name, *(cell(setting, method.name) for setting in columns.values())]
        for method in results.methods
    ]
    return _table(["method", *columns], rows)


def _noise_table(results: Results) -> str:
    """Weight of the noisy domain and losses, and the optimum's own."""
    _, setting = results.noise.levels[-1]

    def cell(method: Method, measure: str) -> str:
        if measure == "weight" and method.example().signed:
            return NOTHING  # no distribution: its weights have no bound
        return _text(results.estimate(setting, method.name, measure), 3)

    measures = ("weight", "suboptimality", "excess", "test", "clean")
    rows = [
        [method.name, *(cell(method, measure) for measure in measures)]
        for method in results.methods
    ]
    weight, test, clean = (results.optimum(setting, name) for name in ("weight", "test", "clean"))
    rows.append(["optimum F*", _text(weight, 3), "0", "", _text(test, 3), _text(clean, 3)])
    head = ["method", "mean weight of the noisy domain", "worst-case loss − F*"]
    head += ["worst excess − G*", "worst-case test loss", "without flipped labels"]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """All columns but the first are of numbers."""
    fields = [field(head[0], itemgetter(0))]
    fields += [field(head[i], itemgetter(i), kind="number") for i in range(1, len(head))]
    return renderers.to_markdown(make_sheet("planted", rows, fields)).rstrip()


def _budget_table(results: Results) -> str:
    chosen = results.runs[results.runs["chosen"]]
    rows = []
    for method in results.methods:
        counts = chosen.loc[chosen["method"] == method.name, "configuration"].value_counts()
        words = method.configurations()
        often = "; ".join(f"{word}: {counts.get(word, 0)}" for word in words)
        rows.append([method.name, str(len(words)), often])
    total = len(chosen) // len(results.methods)
    return _table(["method", "configurations", f"chosen how often, of {total}"], rows)


def _text(value: Estimate, decimals: int) -> str:
    mean = f"{value.mean:.{decimals}f}".replace("-", "−")
    return mean if value.std is None else f"{mean} ± {value.std:.{decimals}f}"
