"""The figures: a measure against every factor, and what one noisy domain does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from robustmd.registry import METHODS
from robustmd.report.style import figure_style, place_style
from robustmd.studies.planted.factors import Factor
from robustmd.studies.planted.methods import FAMILIES, Method
from robustmd.studies.planted.results import REFERENCE, Results

_LABELS = {
    "suboptimality": "worst-case loss − optimum (nats)",
    "excess": "worst excess − optimum (nats)",
    "weight": "mean weight of the noisy domain",
    "clean": "worst-case test loss,\nlabels not flipped (nats)",
}


def draw(results: Results, measure: str) -> Figure:
    """One row of panels a family, one column a factor; even in every row to compare with.

    Mean over seeds of the chosen configurations, band: its 95 % t interval.
    """
    factors = results.factors
    with figure_style():
        figure = Figure(figsize=(2.5 * len(factors) + 1.6, 8.6), layout="constrained")
        axes = figure.subplots(
            len(FAMILIES), len(factors), sharey=True, sharex="col", squeeze=False
        )
        for row, title in zip(axes, FAMILIES, strict=True):
            methods = _with_reference(results.methods, title)
            for axis, factor in zip(row, factors, strict=True):
                _panel(axis, results, factor, methods, measure)
            row[0].set_ylabel(f"{title}\n{_LABELS[measure]}", fontsize=7.5)
            row[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        for axis, factor in zip(axes[-1], factors, strict=True):
            axis.set_xlabel(factor.label, fontsize=7)
        for axis, factor in zip(axes[0], factors, strict=True):
            axis.set_title(factor.name)
        axes[0, 0].set_yscale("log")
        _settle(figure)
    return figure


def draw_noise(results: Results, factor: Factor) -> Figure:
    """Weight, worst case, worst excess and clean test loss against one domain's label noise, for
    even and the ascents."""
    methods = _with_reference(results.methods, *FAMILIES[2:])
    with figure_style():
        figure = Figure(figsize=(11.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 4)
        for axis, measure in zip(axes, ("weight", "suboptimality", "excess", "clean"), strict=True):
            _panel(axis, results, factor, methods, measure)
            axis.set_ylabel(_LABELS[measure])
        figure.supxlabel(factor.label, fontsize=9)
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=len(methods),
        )
        _settle(figure)
    return figure


def _panel(
    axis: Axes, results: Results, factor: Factor, methods: Sequence[Method], measure: str
) -> None:
    x = [value for value, _ in factor.levels]
    for method in methods:
        found = [results.estimate(setting, method.name, measure) for _, setting in factor.levels]
        mean = np.array([one.mean for one in found])
        half = np.array([one.spread("ci95") or 0.0 for one in found])
        style = _style(results, method) | {"linewidth": 1.2, "markersize": 3}
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


def _style(results: Results, method: Method) -> dict[str, Any]:
    look = METHODS.flag(method.name, "look")
    return place_style(len(METHODS) + results.methods.index(method) if look is None else look)


def _with_reference(methods: Sequence[Method], *families: str) -> list[Method]:
    """The methods of these families, and even to compare with."""
    reference = [method for method in methods if method.name == REFERENCE]
    others = [method for method in methods if method.name != REFERENCE]
    return reference + [method for method in others if method.family() in families]
