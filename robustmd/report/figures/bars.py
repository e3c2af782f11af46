"""Horizontal figures with a row a method: as high as there are rows, names left of them."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.figures.lines import wrapped
from robustmd.report.style import figure_text

NAME_WIDTH = 34  # letters of a row's name before it is broken


def row_figure(title: str, names: list[str], *, columns: int = 1, below: float = 0.0) -> Figure:
    """A figure whose axes have the rows `names`, the first on top; `below`: inches for a legend.
    To be called in `figure_style()`."""
    lines = [wrapped(name, NAME_WIDTH).count("\n") + 1 for name in names]
    height = 1.0 + below + sum(0.12 + 0.17 * count for count in lines)
    figure = Figure(figsize=(3.0 + 3.4 * columns, height), layout="constrained")
    axes = figure.subplots(1, columns, sharey=True, squeeze=False)[0]
    axes[0].set_yticks(range(len(names)), [wrapped(name, NAME_WIDTH) for name in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for axis in axes:
        axis.grid(axis="y", visible=False)
    figure.suptitle(figure_text(title), fontsize=10)
    return figure


def axes_of(figure: Figure) -> list[Axes]:
    """The figure's axes, from left to right."""
    return list(figure.axes)
