"""The figures: a measure against every factor, and what one noisy domain does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from robustmd.planted.factors import Factor
from robustmd.planted.results import REFERENCE, Results
from robustmd.registry import METHODS
from robustmd.report.style import figure_style, place_style

FAMILIES = (
    ("fixed weights", ("erm", "even")),
    ("no memory: answers the batch", ("term", "cvar", "topk", "vrex")),
    ("ascent, no regularizer", ("minimax", "afl", "groupdro")),
    ("ascent with a regularizer", ("opt", "optimistic", "ot", "kl", "regret")),
)
NOISE_METHODS = ("even", "minimax", "afl", "groupdro", "opt", "kl", "regret")
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
        for row, (title, names) in zip(axes, FAMILIES, strict=True):
            for axis, factor in zip(row, factors, strict=True):
                _panel(axis, results, factor, _with_reference(names), measure)
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
    """Weight, worst case, worst excess and clean test loss against one domain's label noise."""
    with figure_style():
        figure = Figure(figsize=(11.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 4)
        for axis, measure in zip(axes, ("weight", "suboptimality", "excess", "clean"), strict=True):
            _panel(axis, results, factor, NOISE_METHODS, measure)
            axis.set_ylabel(_LABELS[measure])
        figure.supxlabel(factor.label, fontsize=9)
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=len(NOISE_METHODS),
        )
        _settle(figure)
    return figure


def _panel(
    axis: Axes, results: Results, factor: Factor, names: Sequence[str], measure: str
) -> None:
    x = [value for value, _ in factor.levels]
    for name in names:
        found = [results.estimate(setting, name, measure) for _, setting in factor.levels]
        mean = np.array([one.mean for one in found])
        half = np.array([one.spread("ci95") or 0.0 for one in found])
        style: dict[str, Any] = place_style(METHODS.flag(name, "look")) | {
            "linewidth": 1.2,
            "markersize": 3,
        }
        low = np.maximum(mean - half, mean / 10)  # a log axis has no place for what is below 0
        axis.fill_between(x, low, mean + half, color=style["color"], alpha=0.15, linewidth=0)
        axis.plot(x, mean, label=name, **style)
    if factor.log:
        axis.set_xscale("log")
        axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticks(x, [f"{value:g}" for value in x])


def _settle(figure: Figure) -> None:
    """Place everything now, once: 20 panels take seconds, and a figure is written twice."""
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    figure.set_layout_engine("none")


def _with_reference(names: Sequence[str]) -> list[str]:
    return [*names] if REFERENCE in names else [REFERENCE, *names]
