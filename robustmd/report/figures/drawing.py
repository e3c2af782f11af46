"""A figure before it is a file: its axes, its legend, how it is saved, which rows it shows."""

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.quantities import WORST_TRAIN_LOSS
from robustmd.report.style import figure_style, figure_text

MOST = 14  # rows of the table in one figure; more are a thicket
WIDEST = 60  # letters of a name in the legend before it is broken


@dataclass(frozen=True)
class Drawing:
    """One figure of one data set.

    `name` is its file's, without ending; `caption` says what is drawn, how it is computed, what the
    band is and of how many seeds; `alt` is what someone who cannot see it should know. A page shows
    the `svg`.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    alt: str = ""
    svg: bytes = b""

    @property
    def pixels(self) -> tuple[int, int]:
        """(width, height) on a page."""
        width, height = self.figure.get_size_inches()
        return round(80 * width), round(80 * height)


def image_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a "png", "pdf" or "svg" file."""
    out = io.BytesIO()
    with figure_style():
        figure.savefig(out, format=kind)
    return out.getvalue()


def grid(
    title: str,
    count: int,
    columns: int,
    panel: tuple[float, float],
    around: tuple[float, float] = (0.0, 0.4),
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes, at most `columns` beside each other, each of `panel` inches and
    all with `around` more; `shared` is `subplots`'. To be called in `figure_style()`."""
    columns = min(columns, count)
    lines = -(-count // columns)
    size = (around[0] + panel[0] * columns, around[1] + panel[1] * lines)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, **shared).ravel()
    for unused in axes[count:]:
        unused.remove()
    figure.suptitle(figure_text(title), fontsize=10)
    return figure, list(axes[:count])


def add_legend(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """Names below all panels; the figure is made higher for them."""
    width = figure.get_figwidth()
    widest = max(10, min(WIDEST, int((width - 0.8) / 0.078)))
    longest = max(min(len(figure_text(name)), widest) for name in handles)
    columns = max(1, min(len(handles), int(width / (0.075 * longest + 0.65))))
    names = [wrapped(name, widest) for name in handles]
    lines = -(-sum(name.count("\n") + 1 for name in names) // columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * lines + 0.1)
    look = {"handlelength": 3.6, "columnspacing": 1.4}
    figure.legend(handles.values(), names, loc="outside lower center", ncols=columns, **look)


def wrapped(text: str, width: int) -> str:
    """Text as a figure shows it, broken into lines of at most `width` letters."""
    shown = figure_text(text)
    return "\n".join(textwrap.wrap(shown, width)) or " "


def log_labels(axis: Axis, low: float, high: float) -> None:
    """Labels of an axis from `low` to `high` such as 0.2, not 2 × 10⁻¹; those at 2 and 5 only
    where there are few decades."""
    few = high / low < 1e3
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if few else LogLocator(numticks=6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def chosen(section: Section, groups: Sequence[Group], most: int = MOST) -> tuple[Group, ...]:
    """At most `most` groups in their order: the section's baseline, then those with the lowest
    worst-case training loss."""

    def rank(group: Group) -> tuple[bool, float]:
        first = is_baseline(group, section.baseline)
        return not first, group.estimate(WORST_TRAIN_LOSS).mean

    kept = {id(group) for group in sorted(groups, key=rank)[:most]}
    return tuple(group for group in groups if id(group) in kept)


def left_out_words(section: Section, shown: int, there: int) -> str:
    """What a caption says where not every row of the table is drawn; "" where all are."""
    if shown >= there:
        return ""
    return (
        f" {shown} of {there} rows are drawn: {section.baseline} and those with the lowest "
        "worst-case training loss; the table has all."
    )
