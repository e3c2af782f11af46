"""The convergence figure: one panel a row of the table, measure against T on log axes."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.style import COLOURS, figure_style
from robustmd.studies.theory.results import Row

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
    T = row.result.horizons
    mean = row.values.mean(axis=1)
    low, high = row.values.min(axis=1), row.values.max(axis=1)
    low = np.where(low > 0, low, mean / 10)  # a log axis has no place for a gap below 0
    black, blue, orange, _, pink = COLOURS[:5]
    axis.fill_between(T, low, high, color=blue, alpha=0.2, lw=0, label="smallest to largest seed")
    axis.plot(T, mean, color=blue, marker="o", markersize=3.5, linewidth=1.5, label="mean")
    measure = row.measure
    for label, rate, colour, dashes in (
        ("proved rate", measure.rate, black, "--"),
        ("rate as printed, not true", measure.printed_rate, pink, "-."),
    ):
        if rate is not None:
            shape = np.array([rate(t) for t in T])
            line = shape / shape[0] * mean[0]
            axis.plot(T, line, color=colour, linestyle=dashes, linewidth=1.2, label=label)
    if measure.bound is not None:
        bound = [measure.bound(t) for t in T]
        axis.plot(T, bound, ":", color=orange, linewidth=1.6, label="proved bound")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("iterations T")
    axis.set_ylabel(measure.name)
    axis.set_title(_title(row), fontsize=7.5)


def _title(row: Row) -> str:
    experiment, slope = row.result.experiment, row.slope
    numbers = f"slope {slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}]".replace("-", "−")
    where = f"{experiment.adversary_name}, {experiment.problem_name}"
    return f"{experiment.result}\n{where}\n{numbers}"
