"""A figure before it is a file, how it becomes one, and which rows of the table it shows."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.quantities import WORST_TRAIN_LOSS
from robustmd.report.style import figure_style, figure_text

MOST_LINES = 14  # in one panel; more are a thicket
MOST_PANELS = 12
MOST_ROWS = 20

# The same runs give the same bytes: no dates, no versions.
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}}


@dataclass(frozen=True)
class Drawing:
    """One figure of one data set.

    `name` is its file's, without ending; `caption` says what is drawn, how it is computed, what the
    band is and of how many seeds; `alt` is what someone who cannot see it should know.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure


def image_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a "png" or "pdf" file."""
    out = io.BytesIO()
    with figure_style():
        figure.savefig(out, format=kind, metadata=METADATA[kind])
    return out.getvalue()


def grid(
    title: str,
    count: int,
    columns: int,
    panel: tuple[float, float],
    around: tuple[float, float],
    *,
    share_x: bool = False,
    share_y: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes, at most `columns` beside each other, each of `panel` inches and
    all with `around` more. To be called in `figure_style()`."""
    columns = min(columns, count)
    lines = -(-count // columns)
    size = (around[0] + panel[0] * columns, around[1] + panel[1] * lines)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, sharex=share_x, sharey=share_y, squeeze=False).ravel()
    for unused in axes[count:]:
        unused.remove()
    figure.suptitle(figure_text(title), fontsize=10)
    return figure, list(axes[:count])


def chosen(section: Section, groups: Sequence[Group], most: int = MOST_LINES) -> tuple[Group, ...]:
    """At most `most` groups in their order: the section's baseline, then those with the lowest
    worst-case training loss."""
    if len(groups) <= most:
        return tuple(groups)

    def rank(group: Group) -> tuple[bool, float]:
        first = is_baseline(group, section.baseline)
        return not first, group.estimate(WORST_TRAIN_LOSS).mean

    kept = {id(group) for group in sorted(groups, key=rank)[:most]}
    return tuple(group for group in groups if id(group) in kept)


def left_out_words(section: Section, shown: int, there: int) -> str:
    """What a caption says where not every row of the table is drawn; "" where all are."""
    if shown == there:
        return ""
    return (
        f" {shown} of {there} rows are drawn: {section.baseline} and those with the lowest "
        "worst-case training loss; the table has all."
    )
