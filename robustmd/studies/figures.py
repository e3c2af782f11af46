"""The figures of both studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from robustmd.registry import METHODS
from robustmd.report.figures.drawing import add_legend, grid, image_bytes
from robustmd.report.style import COLOURS, figure_style, place_style
from robustmd.studies.planted.methods import FAMILIES, REFERENCE, Method

if TYPE_CHECKING:
    from robustmd.studies.planted.domains import Factor
    from robustmd.studies.planted.runs import Results
    from robustmd.studies.theory.study import Row

BLACK, BLUE, ORANGE, _, PINK = COLOURS[:5]
PLANTED = {
    "suboptimality": "worst-case loss − optimum (nats)",
    "excess": "worst excess − optimum (nats)",
    "weight": "mean weight of the noisy domain",
    "clean": "worst-case test loss,\nlabels not flipped (nats)",
}


def images(**figures: Figure) -> dict[str, bytes]:
    """Each figure as `<name>.png` and `<name>.pdf`."""
    return {
        f"{name}.{kind}": image_bytes(figure, kind)
        for name, figure in figures.items()
        for kind in ("png", "pdf")
    }


def regret_bound(curve: pd.DataFrame, title: str) -> Figure:
    """R(c) on a log axis for c, c* marked, the plain step's level dashed."""
    plain = curve["regret_bound"].iloc[0]
    ((c, best),) = curve.loc[curve["note"] == "c*", ["c", "regret_bound"]].to_numpy()
    with figure_style():
        figure, (axis,) = grid(title, 1, 1, (5.0, 3.0))
        drawn = curve.iloc[1:]
        label = "step 1/(λ(t + c))"
        axis.plot(drawn["c"], drawn["regret_bound"], color=BLUE, linewidth=1.8, label=label)
        level = f"plain step 1/(λt): {plain:,.0f}"
        axis.axhline(plain, color=BLACK, linestyle="--", linewidth=1.2, label=level)
        label = f"c* = {c:,.0f}: {best:,.0f} ({best / plain:.2f} of it)"
        axis.plot(c, best, "o", color=ORANGE, markersize=7, label=label, linestyle="none")
        axis.set(xscale="log", xlabel="constant c", ylabel="bound on the regret after T steps")
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.legend(loc="lower left")
    return figure


def convergence(rows: Sequence[Row]) -> Figure:
    """A panel for every row of the table: the measure's mean over seeds against T on log axes, with
    a band from the smallest to the largest.

    The dashed line is the proved rate through the first mean: the measure should not fall more
    slowly. The dotted one is the proved bound itself, with the problem's constants.
    """
    with figure_style():
        figure, axes = grid("", len(rows), 4, (2.75, 2.55))
        handles: dict[str, Any] = {}
        for axis, row in zip(axes, rows, strict=True):
            _convergence_panel(axis, row)
            made, labels = axis.get_legend_handles_labels()
            handles |= dict(zip(labels, made, strict=True))
        add_legend(figure, handles)
    return figure


def _convergence_panel(axis: Axes, row: Row) -> None:
    T, measure = row.values.index.tolist(), row.measure
    mean, low, high = (row.values.agg(of, axis=1).to_numpy() for of in ("mean", "min", "max"))
    low = np.where(low > 0, low, mean / 10)  # a log axis has no place for a gap below 0
    axis.fill_between(T, low, high, color=BLUE, alpha=0.2, lw=0, label="smallest to largest seed")
    axis.plot(T, mean, color=BLUE, marker="o", markersize=3.5, linewidth=1.5, label="mean")
    for label, rate, colour, dashes in (
        ("proved rate", measure.rate, BLACK, "--"),
        ("rate as printed, not true", measure.printed_rate, PINK, "-."),
    ):
        if rate is not None:
            shape = np.array([rate(t) for t in T])
            line = shape / shape[0] * mean[0]
            axis.plot(T, line, color=colour, linestyle=dashes, linewidth=1.2, label=label)
    if measure.bound is not None:
        bound = [measure.bound(t) for t in T]
        axis.plot(T, bound, ":", color=ORANGE, linewidth=1.6, label="proved bound")
    axis.set(xscale="log", yscale="log", xlabel="iterations T", ylabel=measure.name)
    result, adversary, problem = row.experiment.names
    numbers = f"slope {row.slope:.3f} [{row.low:.3f}, {row.high:.3f}]".replace("-", "−")
    axis.set_title(f"{result}\n{adversary}, {problem}\n{numbers}", fontsize=7.5)


def planted(results: Results, measure: str) -> Figure:
    """One row of panels for every family, one column for every factor; even in every row to compare
    with. Mean over seeds of the chosen configurations, band: its 95 % t interval."""
    factors, families = results.factors, _families(results)
    with figure_style():
        figure = Figure(figsize=(2.5 * len(factors) + 1.6, 8.6), layout="constrained")
        shape = len(families), len(factors)
        axes = figure.subplots(*shape, sharey=True, sharex="col", squeeze=False)
        for row, (title, methods) in zip(axes, families.items(), strict=True):
            for axis, factor in zip(row, factors, strict=True):
                _planted_panel(axis, results, factor, methods, measure)
            row[0].set_ylabel(f"{title}\n{PLANTED[measure]}", fontsize=7.5)
            row[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        for column, factor in zip(axes.T, factors, strict=True):
            column[0].set_title(factor.name)
            column[-1].set_xlabel(factor.label, fontsize=7)
        axes[0, 0].set_yscale("log")
        _settle(figure)
    return figure


def planted_noise(results: Results) -> Figure:
    """Weight, worst case, worst excess and clean test loss against one domain's label noise, for
    even and the ascents."""
    factor, (*_, plain, regularised) = results.noise, _families(results).values()
    measures = ("weight", "suboptimality", "excess", "clean")
    with figure_style():
        figure, axes = grid(f"against: {factor.label}", 4, 4, (2.9, 2.9))
        for axis, measure in zip(axes, measures, strict=True):
            _planted_panel(axis, results, factor, [*plain, *regularised[1:]], measure)
            axis.set_ylabel(PLANTED[measure])
        handles, labels = axes[0].get_legend_handles_labels()
        add_legend(figure, dict(zip(labels, handles, strict=True)))
        _settle(figure)
    return figure


def _families(results: Results) -> dict[str, list[Method]]:
    """Every family's methods after the one that all are compared with."""
    reference, *_ = (method for method in results.methods if method.name == REFERENCE)
    others = [method for method in results.methods if method is not reference]
    return {
        family: [reference, *(method for method in others if method.family() == family)]
        for family in FAMILIES
    }


def _planted_panel(
    axis: Axes, results: Results, factor: Factor, methods: Sequence[Method], measure: str
) -> None:
    x = [value for value, _ in factor.levels]
    for method in methods:
        found = [results.estimate(setting, method.name, measure) for _, setting in factor.levels]
        mean = np.array([one.mean for one in found])
        half = np.array([one.spread("ci95") or 0.0 for one in found])
        look = METHODS.flag(method.name, "look")
        place = len(METHODS) + results.methods.index(method) if look is None else look
        style = place_style(place) | {"linewidth": 1.2, "markersize": 3}
        low = np.maximum(mean - half, mean / 10)  # a log axis has no place for what is below 0
        axis.fill_between(x, low, mean + half, color=style["color"], alpha=0.15, linewidth=0)
        axis.plot(x, mean, label=method.name, **style)
    if factor.log:
        axis.set_xscale("log")
        axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticks(x, [f"{value:g}" for value in x])


def _settle(figure: Figure) -> None:
    """Place everything now, once: 20 panels take seconds, and a figure is written twice."""
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    figure.set_layout_engine("none")
