"""Panels of lines with bands, their names beside the line ends or below the figure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.figures.drawing import grid
from robustmd.report.figures.labels import (
    add_legend,
    legend_shape,
    letters_of,
    log_labels,
    name_ends,
    wrapped,
)
from robustmd.report.style import Style, figure_style, figure_text

FEW = 4  # lines of a panel that can carry their names at their ends
SHORT = 26  # letters of such a name
PANEL = (4.2, 2.9)  # inches


@dataclass(frozen=True)
class Band:
    """A mean over n seeds and how far they lie apart: arrays of one length, ascending in `x`, most
    often the iterations.

    `low` and `high` are mean ∓ half-width; `least` is the smallest value of any seed. With n = 1
    all are the one run's line.
    """

    n: int
    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Line:
    """`label` as it is shown; `band` may be empty, then nothing is drawn."""

    label: str
    band: Band
    style: Style


@dataclass(frozen=True)
class Panel:
    """One set of axes; `zero` draws a line at 0, `limits` are what the vertical axis shows at
    least, `log_x` is for the horizontal one."""

    title: str
    ylabel: str
    lines: tuple[Line, ...]
    log: bool = False
    zero: bool = False
    limits: tuple[float, float] | None = None
    xlabel: str = "iteration"
    log_x: bool = False


def line_figure(
    title: str,
    panels: Sequence[Panel],
    *,
    columns: int | None = None,
    share_y: bool = False,
    names_below: bool = False,
) -> Figure:
    """`columns` panels beside each other; None: two, or three of many.

    Names stand at the ends of the lines where every panel has at most `FEW` short ones, else (and
    where `names_below`, for lines that end in one point) in one legend below the figure, which is
    made higher for it.
    """
    if share_y:  # or the limits of the last panel would be those of all
        together = _ends(panels)
        panels = [replace(panel, limits=together) for panel in panels]
    direct = not names_below and all(
        len(panel.lines) <= FEW and all(letters_of(line.label) <= SHORT for line in panel.lines)
        for panel in panels
    )
    columns = min(columns or (3 if len(panels) > 4 else 2), len(panels))
    aside = 0.5 if columns == 1 and direct else 0.0
    lines = [line for panel in panels for line in panel.lines]
    entries = list({line.label: (line.label, line.style) for line in lines}.values())
    names, below = (1, 0.0) if direct else legend_shape(entries, PANEL[0] * columns)
    with figure_style():
        around = (aside, 0.4 + below)
        figure, axes = grid(title, len(panels), columns, PANEL, around, share_y=share_y)
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel)
        figure.get_layout_engine().set(w_pad=0.1)  # type: ignore[union-attr, call-arg]
        if direct:
            figure.draw_without_rendering()  # the axes' size decides where names have room
            for axis, panel in zip(axes, panels, strict=True):
                bottom = axis.get_ylim()[0]  # where a log axis has what is 0
                ends = [(a.label, a.band, a.style) for a in panel.lines if len(a.band)]
                name_ends(axis, [(n, (b.x[-1], max(b.mean[-1], bottom)), s) for n, b, s in ends])
        else:
            add_legend(figure, entries, names)
    return figure


def _draw(axis: Axes, panel: Panel) -> None:
    """Lines, bands, axis labels; no names."""
    log, ends = _is_log(panel), _ends([panel])
    axis.set_yscale("log" if log else "linear")
    axis.set_xscale("log" if panel.log_x else "linear")
    for place, line in enumerate(panel.lines):
        if len(line.band):
            _draw_line(axis, line, place, floor=ends[0] if ends else -np.inf)
    if panel.zero:
        axis.axhline(0.0, color="0.4", linewidth=0.8, zorder=1)
    axis.set_title(wrapped(panel.title, 44))
    axis.set_xlabel(panel.xlabel)
    axis.set_ylabel(figure_text(panel.ylabel))
    if ends is not None:
        axis.set_ylim(*ends)
    if log:
        log_labels(axis.yaxis, *axis.get_ylim())
    if panel.log_x:
        log_labels(axis.xaxis, *axis.get_xlim())


def _draw_line(axis: Axes, line: Line, place: int, floor: float) -> None:
    """The mean with about eight markers, shifted from line to line, and the band behind it; what is
    below `floor` stands on it."""
    band, every = line.band, max(1, len(line.band) // 8)
    mean, low, high = (np.maximum(values, floor) for values in (band.mean, band.low, band.high))
    axis.plot(band.x, mean, markevery=(place * every // 5 % every, every), **line.style)
    if band.n > 1:
        axis.fill_between(band.x, low, high, color=line.style["color"], alpha=0.15, linewidth=0)


def _is_log(panel: Panel) -> bool:
    positive = panel.limits is not None and panel.limits[0] > 0
    return panel.log and (positive or any((line.band.mean > 0).any() for line in panel.lines))


def _ends(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """Of the vertical axis that these panels have in common, with all that is drawn between them;
    None where it is left to matplotlib. A log axis begins at the smallest value of any seed."""
    bands = [line.band for panel in panels for line in panel.lines if len(line.band)]
    fixed = [panel.limits for panel in panels if panel.limits is not None]
    if any(map(_is_log, panels)):
        above = [values.min() for band in bands if len(values := band.least[band.least > 0])]
        high = max(band.high.max() for band in bands)
        fixed += [(low / 1.3, max(low, high) * 1.3) for low in above]
    elif fixed and bands:
        fixed.append((min(b.low.min() for b in bands), max(b.high.max() for b in bands)))
    lows, highs = zip(*fixed, strict=True) if fixed else ((), ())
    return (float(min(lows)), float(max(highs))) if fixed else None
