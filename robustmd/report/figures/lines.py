"""Panels of lines with bands, their names beside the line ends or below the figure."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from robustmd import fonts
from robustmd.report.figures.bands import Band
from robustmd.report.figures.names import place_labels
from robustmd.report.style import Style, figure_style, figure_text

FEW = 4  # lines of a panel that can carry their names at their ends
SHORT = 26  # letters of such a name
WIDEST = 60  # letters of a name in the legend before it is broken
PANEL = (4.2, 2.9)  # inches


@dataclass(frozen=True)
class Line:
    """`label` as it is shown; `band` may be empty, then nothing is drawn."""

    label: str
    band: Band
    style: Style


@dataclass(frozen=True)
class Panel:
    """One set of axes; `zero` draws a line at 0, `limits` are what the vertical axis shows at
    least."""

    title: str
    ylabel: str
    lines: tuple[Line, ...]
    log: bool = False
    zero: bool = False
    limits: tuple[float, float] | None = None
    xlabel: str = "iteration"


def line_figure(
    title: str,
    panels: Sequence[Panel],
    *,
    columns: int = 2,
    share_y: bool = False,
    names_below: bool = False,
) -> Figure:
    """Lines over iterations, `columns` panels beside each other.

    Names stand at the ends of the lines where every panel has at most `FEW` short ones, else (and
    where `names_below`, for lines that end in one point) in one legend below the figure, which is
    made higher for it.
    """
    if share_y:  # or the limits of the last panel would be those of all
        together = _ends(panels)
        panels = [replace(panel, limits=together) for panel in panels]
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    direct = not names_below and all(
        len(panel.lines) <= FEW and all(_width(line.label) <= SHORT for line in panel.lines)
        for panel in panels
    )
    entries = legend_entries([line for panel in panels for line in panel.lines])
    width = PANEL[0] * columns + (0.5 if columns == 1 and direct else 0)
    legend_columns, legend_height = (1, 0.0) if direct else legend_shape(entries, width)
    with figure_style():
        height = 0.4 + PANEL[1] * rows + legend_height
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).ravel()
        for place, panel in enumerate(panels):
            draw_panel(axes[place], panel)
        for unused in axes[len(panels) :]:
            unused.remove()
        figure.suptitle(figure_text(title), fontsize=10)
        figure.get_layout_engine().set(w_pad=0.1)  # type: ignore[union-attr, call-arg]
        if direct:
            figure.draw_without_rendering()  # the axes' size decides where names have room
            for axis, panel in zip(axes, panels, strict=False):
                place_labels(axis, [(line.label, line.band, line.style) for line in panel.lines])
        else:
            add_legend(figure, entries, legend_columns)
    return figure


def draw_panel(axis: Axes, panel: Panel) -> None:
    """Lines, bands, axis labels; no names."""
    log, ends = _is_log(panel), _ends([panel])
    if log:
        axis.set_yscale("log")
    for place, line in enumerate(panel.lines):
        if len(line.band):
            draw_line(axis, line, place, floor=ends[0] if ends else -np.inf)
    if panel.zero:
        axis.axhline(0.0, color="0.4", linewidth=0.8, zorder=1)
    axis.set_title(wrapped(panel.title, 44))
    axis.set_xlabel(panel.xlabel)
    axis.set_ylabel(figure_text(panel.ylabel))
    if ends is not None:
        axis.set_ylim(*ends)
    if log:
        log_labels(axis.yaxis, *axis.get_ylim())


def draw_line(axis: Axes, line: Line, place: int, floor: float) -> None:
    """The mean with about eight markers, shifted from line to line, and the band behind it; what is
    below `floor` stands on it."""
    band, count = line.band, len(line.band)
    every = max(1, count // 8)
    mean, low, high = (np.maximum(x, floor) for x in (band.mean, band.low, band.high))
    marked = (place * every // 5 % every, every)
    axis.plot(band.iterations, mean, markevery=marked, **line.style)
    if band.n > 1:
        colour = line.style["color"]
        axis.fill_between(band.iterations, low, high, color=colour, alpha=0.15, linewidth=0)


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


def log_labels(axis: Axis, low: float, high: float) -> None:
    """Labels of an axis from `low` to `high` such as 0.2, not 2 × 10⁻¹; those at 2 and 5 only
    where there are few decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1e3 else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_entries(lines: Sequence[Line]) -> list[tuple[str, Style]]:
    """(name, look), each once, in order."""
    return list({line.label: (line.label, line.style) for line in lines}.values())


def legend_shape(entries: Sequence[tuple[str, Style]], width: float) -> tuple[int, float]:
    """(columns, height in inches) of a legend that fits below a figure of `width` inches."""
    widest = legend_letters(width)
    longest = max((min(_width(label), widest) for label, _ in entries), default=1)
    columns = max(1, min(len(entries), int(width / (0.075 * longest + 0.65))))
    lines = sum(wrapped(label, widest).count("\n") + 1 for label, _ in entries)
    return columns, 0.17 * -(-lines // columns) + 0.1


def legend_letters(width: float) -> int:
    """How many letters a line of the legend may have below a figure of `width` inches."""
    return max(10, min(WIDEST, int((width - 0.8) / 0.078)))


def add_legend(figure: Figure, entries: Sequence[tuple[str, Style]], columns: int) -> None:
    """Below all panels."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    handles = [Line2D([], [], **style) for _, style in entries]
    names = [wrapped(label, legend_letters(figure.get_figwidth())) for label, _ in entries]
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=columns,
        handlelength=3.6,
        columnspacing=1.4,
    )


def wrapped(text: str, width: int) -> str:
    """Text as a figure shows it, broken into lines of at most `width` letters."""
    shown = figure_text(text)
    letters = width * len(shown) // max(1, fonts.width(shown))
    return "\n".join(textwrap.wrap(shown, max(1, letters), drop_whitespace=True)) or " "


def _width(label: str) -> int:
    """Letters' room that the label takes in a figure."""
    return fonts.width(figure_text(label))
