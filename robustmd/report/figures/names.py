"""Names at the ends of lines, none over another."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from robustmd.report.figures.bands import Band
from robustmd.report.style import Style, figure_text

APART = 11.0  # points between the middles of two names of 8 points


def place_labels(axis: Axes, lines: Sequence[tuple[str, Band, Style]]) -> None:
    """Each name right of the axes at the height of its line's end, moved up or down where two would
    touch; a thin line leads back to the end."""
    shown = [(label, band, style) for label, band, style in lines if len(band)]
    if not shown:
        return
    bottom = axis.get_ylim()[0]  # where a log axis has what is 0
    ends = [(band.iterations[-1], max(band.mean[-1], bottom)) for _, band, _ in shown]
    box = axis.get_window_extent()
    points = axis.transData.transform(ends)[:, 1]
    wanted = (points - box.y0) / box.height
    figure = axis.figure
    per_point = figure.dpi / 72
    heights = spread_out(wanted, APART * per_point / box.height)
    for (label, _, style), end, height in zip(shown, ends, heights, strict=True):
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
