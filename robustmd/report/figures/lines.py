"""Panels of lines over the iterations: mean over seeds and band of what the runs recorded."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD_WORDS, Estimate, SpreadKind
from robustmd.report.figures.drawing import (
    Drawing,
    add_legend,
    chosen,
    grid,
    left_out_words,
    log_labels,
    wrapped,
)
from robustmd.report.style import Style, figure_style, figure_text, line_styles
from robustmd.runs import files
from robustmd.runs.run import Run
from robustmd.runs.untrusted import Unreadable, read_table

if TYPE_CHECKING:
    from robustmd.report.content import SectionReport

PANEL = (4.2, 2.9)  # inches
MOST_POINTS = 120  # of a line: more cannot be seen
# Without batch_loss, which is empty for a domain that an iteration did not draw.
COLUMNS = {"iteration": int, "domain": str, "weight": float}
MOST_OF_BAND = 100  # points of its edges
Values = Callable[[Run], pd.Series]  # of one run, over its iterations


@dataclass(frozen=True)
class Line:
    """`band`, over what stands on the horizontal axis: `mean`, `low` and `high` of n seeds, and
    `least`, the smallest value of any seed."""

    label: str
    band: pd.DataFrame
    n: int
    style: Style


@dataclass(frozen=True)
class Panel:
    """One set of axes; `log` and `zero` (a line at 0) are of the vertical axis."""

    title: str
    ylabel: str
    lines: Sequence[Line]
    log: bool = False
    zero: bool = False
    xlabel: str = "iteration"
    log_x: bool = False


class FigureData:
    """What the figures of a section are made of: its numbers, and what each of its runs recorded
    over its iterations. weights.csv of each run is read once."""

    def __init__(self, report: "SectionReport") -> None:
        self.report = report
        self.section: Section = report.section
        self.kind: SpreadKind = report.section.spread  # what bands and bars are
        self._weights: dict[object, pd.DataFrame] = {}

    @property
    def unit(self) -> str:
        """Of the losses, for an axis: " [nats]"."""
        return self.section.loss.bracket

    def losses(self, run: Run) -> pd.DataFrame:
        """f_k(W_t) on the training set, a column for each domain; the iterations where all
        of them were measured and finite."""
        series, domains = run.history.get("train"), list(run.domains)
        if series is None:
            return pd.DataFrame(columns=domains, dtype=float)
        frame = pd.DataFrame(series.loss, series.iterations, domains)
        return frame[np.isfinite(frame).all(axis=1)]

    def weights(self, run: Run) -> pd.DataFrame:
        """p_t as iteration t used it, a column for each domain; no row where none are recorded, or
        weights.csv cannot be read: the run's other numbers are sound without it."""
        if run.path not in self._weights:
            self._weights[run.path] = pd.DataFrame(columns=list(run.domains), dtype=float)
            if run.domain is None:
                with contextlib.suppress(Unreadable):
                    self._weights[run.path] = _read_weights(run)
        return self._weights[run.path]

    @cached_property
    def moving(self) -> list[Group]:
        """The mixtures whose weights change in a run: those that a user fixed do not."""

        def is_moving(run: Run) -> bool:
            weights = self.weights(run)
            return bool(((weights.max() - weights.min()) > 1e-9).any())

        return [group for group in self.section.mixtures if any(map(is_moving, group.runs))]

    def lines(
        self,
        groups: Sequence[Group],
        values: Values,
        *,
        names: Sequence[str] = (),
        styles: Sequence[Style] = (),
    ) -> list[Line]:
        """A line for each group that has any value, of those that are `chosen`. `names` and
        `styles` are the groups' own where they are not given."""
        labels = names or [group.label for group in groups]
        looks = styles or line_styles(groups)
        shown = set(map(id, chosen(self.section, groups)))
        found = [
            self.line(group, values, label, look)
            for group, label, look in zip(groups, labels, looks, strict=True)
            if id(group) in shown
        ]
        return with_counts([line for line in found if line is not None])

    def line(self, group: Group, values: Values, label: str, style: Style) -> Line | None:
        """Of the group's runs that have any value, at the iterations that all of those have, of
        which `MOST_POINTS` are drawn."""
        by_seed = {run.seed: found for run in group.runs if len(found := values(run))}
        if not by_seed:
            return None
        whole = thinned(pd.concat(by_seed, axis=1, join="inner"))
        return Line(label, band(whole, self.kind), len(by_seed), style)

    def drawing(
        self,
        name: str,
        title: str,
        what: str,
        panels: Sequence[Panel],
        there: Sequence[object] = (),
        *,
        shown: int = 0,
        bands: str = "",
        more: str = "",
        alt: str = "",
        **layout: Any,
    ) -> Drawing:
        """Panels of lines, with a caption and what to know without seeing them.

        Args:
            what: the caption's beginning, before what line and band are and `more`.
            there: the rows of the table that could be shown; `shown`: how many are, where not each
                of them is a line.
            bands: what line and band are, where they are not of seeds.
            alt: in place of the lines' last values.
            layout: see `line_figure`.
        """
        lines = [line for panel in panels for line in panel.lines]
        count = shown or len({line.label for line in lines})
        missing = left_out_words(self.section, count, len(there))
        ends = (
            f"{panel.title}: "
            + ", ".join(f"{line.label} {line.band['mean'].iloc[-1]:.3g}" for line in panel.lines)
            for panel in panels
        )
        return Drawing(
            name,
            title,
            f"{what} {bands or band_words(lines, self.kind)}{more}{missing}",
            line_figure(self.section.data, panels, **layout),
            alt or f"{title} over the iterations; at the end: {'; '.join(ends)}",
        )


def _read_weights(run: Run) -> pd.DataFrame:
    """Of weights.csv: the iterations with one finite weight a domain, thinned to `MOST_POINTS`."""
    frame = pd.DataFrame(read_table(run.path / files.WEIGHTS, COLUMNS), columns=[*COLUMNS])
    sound = frame[frame["domain"].isin(run.domains) & np.isfinite(frame["weight"])]
    last = sound.drop_duplicates(["iteration", "domain"], keep="last")
    table = last.pivot(index="iteration", columns="domain", values="weight")
    return thinned(table.reindex(columns=list(run.domains)).dropna())  # ascending in iteration


def thinned(frame: pd.DataFrame, most: int = MOST_POINTS) -> pd.DataFrame:
    """At most so many rows, evenly from the first to the last."""
    return frame.iloc[np.linspace(0, len(frame) - 1, min(len(frame), most)).astype(int)]


def band(by_seed: pd.DataFrame, kind: SpreadKind) -> pd.DataFrame:
    """`Line.band` of values [M, n], a column for each seed; with one seed all are its line."""
    mean, n = by_seed.mean(axis=1), by_seed.shape[1]
    of_unit = Estimate(0.0, 1.0, n).spread(kind) if n > 1 else None  # where the std is 1
    half = by_seed.std(axis=1) * of_unit if of_unit is not None else 0.0
    return pd.DataFrame(
        {"mean": mean, "low": mean - half, "high": mean + half, "least": by_seed.min(axis=1)}
    )


def band_words(lines: Sequence[Line], kind: SpreadKind) -> str:
    """ "Line: mean over n = 3 seeds; band: ± one standard error…": what line and band are."""
    counts = sorted({line.n for line in lines})
    if counts == [1]:
        return "n = 1 seed: no band."
    n = f"n = {counts[0]} seeds" if len(counts) == 1 else "n seeds, n as named"
    alone = " (none where n = 1)" if counts[0] == 1 else ""
    return f"Line: mean over {n}; band: ± {SPREAD_WORDS[kind]}{alone}."


def with_counts(lines: Sequence[Line]) -> list[Line]:
    """The lines, with "(n = 2)" in their names where not all n are the same."""
    if len({line.n for line in lines}) < 2:
        return list(lines)
    return [replace(line, label=f"{line.label} (n = {line.n})") for line in lines]


def line_figure(
    title: str, panels: Sequence[Panel], *, columns: int | None = None, share_y: bool = False
) -> Figure:
    """`columns` panels beside each other; None: two, or three of many."""
    columns = columns or (3 if len(panels) > 4 else 2)
    with figure_style():
        figure, axes = grid(title, len(panels), columns, PANEL, sharey=share_y)
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel, _log_limits(panels if share_y else [panel]))
        lines = [line for panel in panels for line in panel.lines]
        add_legend(figure, {line.label: Line2D([], [], **line.style) for line in lines})
    return figure


def _log_limits(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """Of the log axis that these panels have in common: it begins at the smallest value of any
    seed. None where it is linear, as where nothing is above 0."""
    lines = [line for panel in panels if panel.log for line in panel.lines]
    least = (line.band["least"] for line in lines)
    above = [values.min() for one in least if len(values := one[one > 0])]
    if not above:
        return None
    return min(above) / 1.3, max(*above, *(line.band["high"].max() for line in lines)) * 1.3


def _draw(axis: Axes, panel: Panel, limits: tuple[float, float] | None) -> None:
    """Means with about eight markers, shifted from line to line, and the bands behind them; what
    is below a log axis stands at its lower end."""
    for place, line in enumerate(panel.lines):
        shown = line.band if limits is None else line.band.clip(lower=limits[0])
        every = max(1, len(shown) // 8)
        marked = (place * every // 5 % every, every)
        axis.plot(shown.index, shown["mean"], markevery=marked, **line.style)
        if line.n > 1:
            look: Style = {"color": line.style["color"], "alpha": 0.15, "linewidth": 0}
            few = shown.iloc[:: 1 + len(shown) // MOST_OF_BAND]
            axis.fill_between(few.index, few["low"], few["high"], **look)
    if panel.zero:
        axis.axhline(0.0, color="0.4", linewidth=0.8, zorder=1)
    axis.set_title(wrapped(panel.title, 44))
    axis.set_xlabel(panel.xlabel)
    axis.set_ylabel(figure_text(panel.ylabel))
    if limits is not None:
        axis.set(yscale="log", ylim=limits)
        log_labels(axis.yaxis, *limits)
    if panel.log_x:
        axis.set_xscale("log")
        log_labels(axis.xaxis, *axis.get_xlim())
