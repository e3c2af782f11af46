"""The names of lines: beside their ends, none over another, or in a legend below the figure."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from robustmd import fonts
from robustmd.report.style import Style, figure_text

APART = 11.0  # points between the middles of two names of 8 points
WIDEST = 60  # letters of a name in the legend before it is broken
Entry = tuple[str, Style]  # a name in the legend and its line's look


def wrapped(text: str, width: int) -> str:
    """Text as a figure shows it, broken into lines of at most `width` letters."""
    shown = figure_text(text)
    letters = width * len(shown) // max(1, fonts.width(shown))
    return "\n".join(textwrap.wrap(shown, max(1, letters), drop_whitespace=True)) or " "


def letters_of(label: str) -> int:
    """Letters' room that the label takes in a figure."""
    return fonts.width(figure_text(label))


def log_labels(axis: Axis, low: float, high: float) -> None:
    """Labels of an axis from `low` to `high` such as 0.2, not 2 × 10⁻¹; those at 2 and 5 only
    where there are few decades."""
    few = high / low < 1e3
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if few else LogLocator(numticks=6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_shape(entries: Sequence[Entry], width: float) -> tuple[int, float]:
    """(columns, height in inches) of a legend that fits below a figure of `width` inches."""
    widest = _legend_letters(width)
    longest = max((min(letters_of(label), widest) for label, _ in entries), default=1)
    columns = max(1, min(len(entries), int(width / (0.075 * longest + 0.65))))
    lines = sum(wrapped(label, widest).count("\n") + 1 for label, _ in entries)
    return columns, 0.17 * -(-lines // columns) + 0.1


def _legend_letters(width: float) -> int:
    """How many letters a line of the legend may have below a figure of `width` inches."""
    return max(10, min(WIDEST, int((width - 0.8) / 0.078)))


def add_legend(figure: Figure, entries: Sequence[Entry], columns: int) -> None:
    """Below all panels."""
    widest = _legend_letters(figure.get_figwidth())
    figure.legend(
        [Line2D([], [], **style) for _, style in entries],
        [wrapped(label, widest) for label, _ in entries],
        loc="outside lower center",
        ncols=columns,
        handlelength=3.6,
        columnspacing=1.4,
    )


def name_ends(axis: Axes, ends: Sequence[tuple[str, tuple[float, float], Style]]) -> None:
    """Each name right of the axes at the height of its line's end (x, y), moved up or down where
    two would touch; a thin line leads back to the end."""
    if not ends:
        return
    box = axis.get_window_extent()
    points = axis.transData.transform([end for _, end, _ in ends])[:, 1]
    per_point = axis.figure.dpi / 72
    heights = spread_out((points - box.y0) / box.height, APART * per_point / box.height)
    for (label, end, style), height in zip(ends, heights, strict=True):
        axis.annotate(
            figure_text(label),
            xy=end,
            xytext=(1.05, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": style["color"], "linewidth": 0.6, "shrinkA": 1},
            annotation_clip=False,
        )


def spread_out(wanted: Sequence[float] | np.ndarray, apart: float) -> np.ndarray:
    """Heights in the order of `wanted`, as near to them as can be with neighbours at least `apart`.

    Heights that touch are merged into blocks, each placed about its own mean (pool adjacent
    violators), so that no name moves further than it must.
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[list[float]] = []  # [sum of (wanted − offset within the block), count]
    for height in np.asarray(wanted, float)[order]:
        blocks.append([height, 1.0])
        while len(blocks) > 1 and _start(blocks[-2]) + blocks[-2][1] * apart > _start(blocks[-1]):
            total, count = blocks.pop()
            blocks[-1][0] += total - count * blocks[-1][1] * apart
            blocks[-1][1] += count
    placed = [_start(block) + i * apart for block in blocks for i in range(int(block[1]))]
    heights = np.empty(len(placed))
    heights[order] = placed
    return heights


def _start(block: list[float]) -> float:
    """Height of the block's lowest member: the mean of what its members would have it be."""
    return block[0] / block[1]
