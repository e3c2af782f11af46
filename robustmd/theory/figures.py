"""The convergence figure: one panel a row of the table, measure against T on log axes."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.style import COLOURS, figure_style
from robustmd.theory.results import Row

_COLUMNS = 4


def draw(rows: Sequence[Row]) -> Figure:
    """Mean over seeds with a band from the smallest to the largest, and the proved rate beside it.

    The dashed line is the rate through the first mean: the measure should not fall more slowly. The
    dotted one is the proved bound itself, with the problem's constants.
    """
    lines = math.ceil(len(rows) / _COLUMNS)
    with figure_style():
        figure = Figure(figsize=(2.75 * _COLUMNS, 2.55 * lines + 0.4), layout="constrained")
        axes = figure.subplots(lines, _COLUMNS, squeeze=False).flatten()
        for axis, row in zip(axes, rows, strict=False):
            _panel(axis, row)
        for axis in axes[len(rows) :]:
            axis.set_axis_off()
        handles: dict[str, Artist] = {}
        for axis in axes:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles)
        )
    return figure


def _panel(axis: Axes, row: Row) -> None:
    T = np.array(row.result.horizons)
    mean = row.values.mean(axis=1)
    black, blue, orange = COLOURS[:3]
    positive = np.clip(row.values, 1e-300, None)  # a log axis has no place for a gap below 0
    low = np.where(row.values.min(axis=1) > 0, positive.min(axis=1), mean / 10)
    high = row.values.max(axis=1)
    axis.fill_between(T, low, high, color=blue, alpha=0.2, lw=0, label="smallest to largest seed")
    axis.plot(T, mean, color=blue, marker="o", markersize=3.5, linewidth=1.5, label="mean")
    if row.measure.rate is not None:
        rate = np.array([row.measure.rate(int(t)) for t in T])
        axis.plot(
            T, rate / rate[0] * mean[0], "--", color=black, linewidth=1.1, label="proved rate"
        )
    if row.measure.bound is not None:
        bound = [row.measure.bound(int(t)) for t in T]
        axis.plot(T, bound, ":", color=orange, linewidth=1.6, label="proved bound")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("iterations T")
    axis.set_ylabel(row.measure.name)
    experiment = row.result.experiment
    slope = f"slope {row.slope.value:.2f} [{row.slope.low:.2f}, {row.slope.high:.2f}]"
    where = f"{experiment.adversary_name}, {experiment.problem_name}"
    axis.set_title(f"{experiment.result}\n{where}\n{slope}".replace("-", "−"), fontsize=7.5)
