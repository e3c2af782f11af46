"""Horizontal figures, a row for each method: paired differences, regrets, running times."""

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from robustmd.report.aggregate import Group
from robustmd.report.estimate import SPREAD_WORDS
from robustmd.report.figures.drawing import (
    MOST_ROWS,
    Drawing,
    chosen,
    grid,
    left_out_words,
)
from robustmd.report.figures.figure_data import FigureData
from robustmd.report.figures.labels import add_legend, wrapped
from robustmd.report.forest import forest
from robustmd.report.numbers import range_text, seconds_text
from robustmd.report.paired import MEAN, Comparison
from robustmd.report.style import COLOURS, FILLS, HATCHES, Style, figure_style, figure_text
from robustmd.runs.run import Run

NAME_WIDTH = 34  # letters of a row's name before it is broken
MEASURED: Style = {"marker": "o", "linestyle": "", "color": COLOURS[1]}
BOUND: Style = {"marker": "|", "linestyle": "", "color": COLOURS[2], "markersize": 14}
BOUND |= {"markeredgewidth": 2.2}
PARTS = ("data", "model", "adversary", "measurement", "rest")
LOOKS = dict(zip(PARTS, zip(FILLS, HATCHES, strict=True), strict=True))


def row_figure(
    title: str, names: list[str], *, columns: int = 1, below: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """A figure whose axes have the rows `names`, the first on top; `below`: inches for a legend.
    To be called in `figure_style()`."""
    shown = [wrapped(name, NAME_WIDTH) for name in names]
    height = sum(0.12 + 0.17 * (name.count("\n") + 1) for name in shown)
    figure, axes = grid(title, columns, columns, (3.4, height), (3.0, 1.0 + below), share_y=True)
    axes[0].set_yticks(range(len(names)), shown)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for axis in axes:
        axis.grid(axis="y", visible=False)
    return figure, axes


def paired_differences(data: FigureData) -> Drawing | None:
    """Left the worst test accuracy, right the price; the gray strip is what counts as
    equivalent."""
    found = forest(data.report.comparisons)
    if found is None:
        return None
    baseline, margin, rows = found.baseline, found.margin, found.rows[:MOST_ROWS]
    with figure_style():
        names = [f"{gain.method} (n = {gain.difference.n})" for gain, _ in rows]
        figure, axes = row_figure(data.section.data, names, columns=2)
        for place, row in enumerate(rows):
            for axis, one in zip(axes, row, strict=True):
                if one is not None:
                    _interval(axis, place, one)
        for axis, title in zip(axes, ("worst test accuracy", f"price: {found.price}"), strict=True):
            axis.axvspan(-margin, margin, color="0.92", zorder=0)
            axis.axvline(0.0, color="0.3", linewidth=0.8, zorder=1)
            axis.set_title(figure_text(title))
            axis.set_xlabel(figure_text(f"method − {baseline} [points]"))
            axis.margins(x=0.1)
    paid = f"the {MEAN}" if found.price == MEAN else f"on the domain that {baseline} does best on"
    return Drawing(
        "paired_differences",
        f"Paired differences to {baseline}",
        f"Method − {baseline} in points of test accuracy, paired by seed: mean (dot) and 95 % t "
        "interval (line; none where n < 2). Left: the worst domain, within each run. Right: the "
        f"price, {paid}. Gray: within ±{margin:g} points, which counts as equivalent.",
        "; ".join(f"{gain.method}: {gain.mean_text} points, {gain.said}" for gain, _ in rows),
        figure,
    )


def _interval(axis: Axes, place: int, one: Comparison) -> None:
    colour = {"better": COLOURS[3], "worse": COLOURS[2]}.get(one.word, "0.25")
    if one.difference.interval is not None:
        axis.plot(one.difference.interval, (place, place), color=colour, linewidth=1.8)
    marker = {"better": "^", "worse": "v", "equivalent": "s"}.get(one.word, "o")
    axis.plot(one.difference.mean, place, marker=marker, markersize=6, color=colour)


def regret(data: FigureData) -> Drawing | None:
    """A dot with its spread for the adversary's measured regret, a bar across for its bound."""
    rows = data.report.regrets[:MOST_ROWS]
    if not rows:
        return None
    with figure_style():
        figure, (axis,) = row_figure(data.section.data, [row.label for row in rows], below=0.3)
        for place, row in enumerate(rows):
            half = row.measured.spread(data.kind) or None
            axis.errorbar(row.measured.mean, place, xerr=half, capsize=3, **MEASURED)
            if row.bound is not None:
                axis.plot(row.bound.mean, place, **BOUND)
        axis.axvline(0.0, color="0.4", linewidth=0.8, zorder=1)
        axis.set_xlabel("nats per update")
        axis.margins(x=0.08)
        entries = [("measured regret", MEASURED), ("proved bound", BOUND | {"markersize": 10})]
        add_legend(figure, entries, 2)
    there = len(data.report.regrets)
    more = f" The first {len(rows)} of {there} rows." if there > len(rows) else ""
    n = range_text(row.measured.n for row in rows)
    bars = "" if n == "1" else f"; bars: ± {SPREAD_WORDS[data.kind]}"
    said = (
        f"{row.label}: regret {row.measured.mean:.3g}, "
        + ("no bound" if row.bound is None else f"bound {row.bound.mean:.3g}")
        for row in rows
    )
    return Drawing(
        "regret",
        "Regret of the adversary",
        "How much better the best fixed weights would have done against the run's own mini-batch "
        "losses, in nats per update and with the method's regularizer, and the bound proved for it "
        f"(mean over seeds; no mark where none is proved). n = {n} seeds{bars}.{more}",
        "; ".join(said),
        figure,
    )


def running_time(data: FigureData) -> Drawing | None:
    """Where the time of a run goes: one bar for each method, mean over seeds, with its parts
    stacked and its whole length in words."""
    section = data.section
    timed = [group for group in chosen(section, section.groups) if _mean_parts(group)]
    if not timed:
        return None
    parts = [_mean_parts(group) for group in timed]
    names, totals = [group.label for group in timed], [sum(one.values()) for one in parts]
    used = [part for part in PARTS if any(one[part] > 0 for one in parts)]
    with figure_style():
        figure, (axis,) = row_figure(section.data, names, below=0.3)
        starts = [0.0] * len(names)
        for part in used:
            widths = [one[part] for one in parts]
            fill, hatch = LOOKS[part]
            edge = "white" if fill == "#000000" else "black"
            look: Style = {"color": fill, "hatch": hatch, "edgecolor": edge, "linewidth": 0.4}
            axis.barh(range(len(names)), widths, left=starts, height=0.62, **look)
            starts = [start + width for start, width in zip(starts, widths, strict=True)]
        for row, total in enumerate(totals):
            beside: Style = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(seconds_text(total), (total, row), fontsize=8, **beside)
        axis.set_xlim(0, max(totals) * 1.18 or 1.0)
        axis.set_xlabel("seconds of one run")
        patches = [
            Patch(facecolor=LOOKS[p][0], hatch=LOOKS[p][1], edgecolor="0.4", label=p) for p in used
        ]
        figure.legend(
            handles=patches, loc="outside lower center", ncols=len(patches), handlelength=2.6
        )
    said = (f"{name} {seconds_text(total)}" for name, total in zip(names, totals, strict=True))
    return Drawing(
        "running_time",
        "Running time",
        "Seconds of one run, mean over its seeds, by part: data (draw and copy the batches), model "
        "(forward, backward, step), adversary (the weights' update, with its full passes over the "
        "data where a method makes them), measurement, and the rest (start, preparation, writing). "
        f"{_where(timed)}{left_out_words(section, len(timed), len(section.groups))}",
        f"Seconds of one run: {', '.join(said)}",
        figure,
    )


def parts_of(run: Run) -> Mapping[str, float]:
    """{part: seconds} of one run; {} where it did not record them. Training is data + model +
    adversary; the total is training + measurement + rest."""
    seconds = run.seconds
    if not {"training", "adversary", "measurement"} <= set(seconds):
        return {}
    data, adversary = seconds.get("data", 0.0), seconds["adversary"]
    known = seconds["training"] + seconds["measurement"]
    parts = {
        "data": data,
        "model": seconds["training"] - data - adversary,
        "adversary": adversary,
        "measurement": seconds["measurement"],
        "rest": seconds.get("total", known) - known,
    }
    return {part: max(value, 0.0) for part, value in parts.items()}


def _mean_parts(group: Group) -> dict[str, float]:
    runs = [parts for run in group.runs if (parts := parts_of(run))]
    return {part: statistics.fmean(one[part] for one in runs) for part in PARTS} if runs else {}


def _where(groups: Sequence[Group]) -> str:
    devices = sorted({run.device for group in groups for run in group.runs})
    listed = ", ".join(devices)
    if len(devices) > 1:
        return f"These runs are of several devices ({listed}): their times are not comparable."
    return f"Device: {listed}. Times of a machine that did other work at once are longer."
