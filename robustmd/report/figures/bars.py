"""Horizontal figures, a row for each method: paired differences, regrets, running times."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from robustmd.report.estimate import SPREAD_WORDS, estimate, range_text, seconds_text
from robustmd.report.figures.drawing import (
    MOST,
    Drawing,
    add_legend,
    chosen,
    grid,
    left_out_words,
    wrapped,
)
from robustmd.report.figures.lines import FigureData
from robustmd.report.names import is_many
from robustmd.report.paired import MEAN, Comparison, forest
from robustmd.report.regret import by_row
from robustmd.report.style import COLOURS, FILLS, HATCHES, Style, figure_style, figure_text
from robustmd.runs.run import Run

NAME_WIDTH = 34  # letters of a row's name before it is broken
MEASURED: Style = {"marker": "o", "linestyle": "", "color": COLOURS[1]}
BOUND: Style = {"marker": "|", "linestyle": "", "color": COLOURS[2], "markersize": 12}
BOUND |= {"markeredgewidth": 2.2}
SAID: dict[str, Style] = {  # the look of a verdict
    "better": {"color": COLOURS[3], "marker": "^"},
    "worse": {"color": COLOURS[2], "marker": "v"},
    "equivalent": {"color": "0.25", "marker": "s"},
    "undecided": {"color": "0.25", "marker": "o"},
}
PARTS = ("data", "model", "adversary", "measurement", "rest")


def row_figure(title: str, names: Sequence[str], columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure whose axes have the rows `names`, the first on top. To be called in
    `figure_style()`."""
    shown = [wrapped(name, NAME_WIDTH) for name in names]
    height = sum(0.12 + 0.17 * (name.count("\n") + 1) for name in shown)
    width = 0.3 + 0.08 * max(len(line) for name in shown for line in name.splitlines())
    figure, axes = grid(title, columns, columns, (3.4, height), (width, 1.0), sharey=True)
    axes[0].set_yticks(range(len(names)), shown)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for axis in axes:
        axis.grid(axis="y", visible=False)
    return figure, axes


def paired_differences(data: FigureData) -> Drawing | None:
    """Left the worst test accuracy (or loss), right the price; the gray strip is what counts as
    equivalent."""
    every, baseline = forest(data.report.comparisons), data.section.baseline
    if not every:
        return None
    rows, (first, _) = every[:MOST], every[0]
    many, margin = is_many(data.section.domains), first.margin
    titles = (first.what, f"price: {MEAN if many else f'{baseline}’s best domain'}")
    unit = f" [{first.unit}]" if first.unit else ""
    with figure_style():
        names = [f"{gain.method} (n = {gain.difference.n})" for gain, _ in rows]
        figure, axes = row_figure(data.section.data, names, columns=2)
        for axis, title, ones in zip(axes, titles, zip(*rows, strict=True), strict=True):
            for place, one in enumerate(ones):
                _interval(axis, place, one)
            axis.axvspan(-margin, margin, color="0.92", zorder=0)
            axis.axvline(0.0, color="0.3", linewidth=0.8, zorder=1)
            axis.set_title(figure_text(title))
            axis.set_xlabel(figure_text(f"method − {baseline}{unit}"))
            axis.margins(x=0.1)
    within = f"±{margin:g} {first.unit}".strip()
    measured = "points of test accuracy" if first.unit == "points" else f"test loss{unit}"
    paid = f"the {MEAN}" if many else f"on the domain that {baseline} does best on"
    return Drawing(
        "paired_differences",
        f"Paired differences to {baseline}",
        f"Method − {baseline} in {measured}, paired by seed: mean (dot) and 95 % t "
        "interval (line; none where n < 2). Left: the worst domain, within each run. Right: the "
        f"price, {paid}. Gray: within {within}, which counts as equivalent."
        f"{_first(len(rows), len(every))}",
        figure,
        "; ".join(f"{gain.method}: {gain.mean_in_unit}, {gain.said}" for gain, _ in rows),
    )


def _interval(axis: Axes, place: int, one: Comparison | None) -> None:
    if one is not None:
        look = SAID[one.word]
        if one.difference.interval is not None:
            axis.plot(one.difference.interval, (place, place), color=look["color"], linewidth=1.8)
        axis.plot(one.difference.mean, place, markersize=6, **look)


def _first(shown: int, there: int) -> str:
    return f" The first {shown} of {there} rows." if there > shown else ""


def regret(data: FigureData) -> Drawing | None:
    """A dot with its spread for the adversary's measured regret, a bar across for its bound."""
    every = by_row(data.report.regrets)
    rows = {runs["label"].iloc[0]: estimate(runs["measured"]) for runs in every[:MOST]}
    if not rows:
        return None
    loss = data.section.loss
    with figure_style():
        figure, (axis,) = row_figure(data.section.data, [*rows])
        for place, (runs, measured) in enumerate(zip(every, rows.values(), strict=False)):
            half = measured.spread(data.kind) or None
            axis.errorbar(measured.mean, place, xerr=half, capsize=3, **MEASURED)
            axis.plot(runs["bound"].mean(skipna=False), place, **BOUND)  # NaN: none
        axis.axvline(0.0, color="0.4", linewidth=0.8, zorder=1)
        axis.set_xlabel(f"{loss.unit or 'loss'} per update")
        axis.margins(x=0.08)
        looks = {"measured regret": MEASURED, "proved bound": BOUND}
        add_legend(figure, {name: Line2D([], [], **look) for name, look in looks.items()})
    n = range_text(measured.n for measured in rows.values())
    bars = "" if n == "1" else f"; bars: ± {SPREAD_WORDS[data.kind]}"
    return Drawing(
        "regret",
        "Regret of the adversary",
        "How much better the best fixed weights would have done against the run's own mini-batch "
        f"losses,{loss.in_unit} per update and with the method's regularizer, and the "
        "bound proved for it "
        f"(mean over seeds; no mark where none is proved). n = {n} seeds{bars}."
        f"{_first(len(rows), len(every))}",
        figure,
        "; ".join(f"{label}: regret {measured.mean:.3g}" for label, measured in rows.items()),
    )


def running_time(data: FigureData) -> Drawing | None:
    """Where the time of a run goes: one bar for each method, mean over seeds, with its parts
    stacked and its whole length in words."""
    section = data.section
    groups = chosen(section, section.groups)
    timed = {g.label: mean for g in groups if (mean := mean_parts(g.runs)) is not None}
    if not timed:
        return None
    spent = pd.DataFrame(timed).T
    ends, totals = spent.cumsum(axis=1), spent.sum(axis=1)
    with figure_style():
        figure, (axis,) = row_figure(section.data, [*timed])
        handles = {}
        for part, fill, hatch in zip(PARTS, FILLS, HATCHES, strict=True):
            if (spent[part] > 0).any():
                edge = "white" if fill == "#000000" else "black"
                look: Style = {"facecolor": fill, "hatch": hatch, "linewidth": 0.4}
                starts = ends[part] - spent[part]
                rows = range(len(spent))
                axis.barh(rows, spent[part], left=starts, height=0.62, edgecolor=edge, **look)
                handles[part] = Patch(edgecolor="0.4", **look)
        for row, total in enumerate(totals):
            beside: Style = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(seconds_text(total), (total, row), fontsize=8, **beside)
        axis.set_xlim(0, totals.max() * 1.18 or 1.0)
        axis.set_xlabel("seconds of one run")
        add_legend(figure, handles)
    said = ", ".join(f"{name} {seconds_text(total)}" for name, total in totals.items())
    devices = sorted({run.device for run in section.runs})
    unlike = "; times of several devices are not comparable" if len(devices) > 1 else ""
    return Drawing(
        "running_time",
        "Running time",
        "Seconds of one run, mean over its seeds, by part: data (draw and copy the batches), model "
        "(forward, backward, step), adversary (the weights' update, with its full passes over the "
        "data where a method makes them), measurement, and the rest (start, preparation, writing). "
        f"Device: {', '.join(devices)}{unlike}. Times of a machine that did other work at once are "
        f"longer.{left_out_words(section, len(groups), len(section.groups))}",
        figure,
        f"Seconds of one run: {said}",
    )


def mean_parts(runs: Sequence[Run]) -> pd.Series | None:
    """Seconds of each of `PARTS`, mean over those runs that recorded them; None where none did.
    Training is data + model + adversary; the total is training + measurement + rest."""
    needed = ["training", "adversary", "measurement"]
    seconds = pd.DataFrame([run.seconds for run in runs], columns=[*needed, "data", "total"])
    known = seconds.dropna(subset=needed)
    if known.empty:
        return None
    data, whole = known["data"].fillna(0.0), known["training"] + known["measurement"]
    parts = {
        "data": data,
        "model": known["training"] - data - known["adversary"],
        "adversary": known["adversary"],
        "measurement": known["measurement"],
        "rest": known["total"].fillna(whole) - whole,
    }
    return pd.DataFrame(parts).clip(lower=0.0).mean()
