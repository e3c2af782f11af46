"""Where the time of a run goes, by method: the paper's running times, with the parts stacked."""

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.patches import Patch

from robustmd.report.aggregate import Group, Section
from robustmd.report.figures.bars import axes_of, row_figure
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, left_out_words
from robustmd.report.style import FILLS, HATCHES, figure_style
from robustmd.runs.run import Run

PARTS = ("data", "model", "adversary", "measurement", "rest")


def draw(section: Section) -> Drawn | None:
    """A bar a method, mean over seeds, and its whole length in words."""
    timed = [group for group in chosen(section.groups) if _mean_parts(group)]
    if not timed:
        return None
    parts = {group.label: _mean_parts(group) for group in timed}
    used = [part for part in PARTS if any(one.get(part, 0.0) > 0 for one in parts.values())]
    with figure_style():
        figure = row_figure(section.data, list(parts), below=0.3)
        (axis,) = axes_of(figure)
        starts = [0.0] * len(parts)
        looks = dict(zip(PARTS, zip(FILLS, HATCHES, strict=True), strict=True))
        for part in used:
            widths = [one.get(part, 0.0) for one in parts.values()]
            colour, hatch = looks[part]
            edge = "white" if colour == "#000000" else "black"
            axis.barh(
                range(len(parts)),
                widths,
                left=starts,
                height=0.62,
                color=colour,
                hatch=hatch,
                edgecolor=edge,
                linewidth=0.4,
            )
            starts = [start + width for start, width in zip(starts, widths, strict=True)]
        for row, total in enumerate(starts):
            axis.annotate(
                seconds_text(total),
                (total, row),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axis.set_xlim(0, max(starts) * 1.18 or 1.0)
        axis.set_xlabel("seconds of one run")
        patches = [
            Patch(facecolor=looks[p][0], hatch=looks[p][1], edgecolor="0.4", label=p) for p in used
        ]
        figure.legend(
            handles=patches, loc="outside lower center", ncols=len(patches), handlelength=2.6
        )
    return Drawn(
        "running_time",
        "Running time",
        "Seconds of one run, mean over its seeds, by part: data (draw and copy the batches), model "
        "(forward, backward, step), adversary (the weights' update, with its full passes over the "
        "data where a method makes them), measurement, and the rest (start, preparation, writing). "
        f"{_where(timed)}{left_out_words(len(timed), len(section.groups))}",
        "Seconds of one run: "
        + ", ".join(f"{label} {seconds_text(sum(p.values()))}" for label, p in parts.items()),
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


def seconds_text(seconds: float) -> str:
    """ "0.8 s", "42 s", "17 min", "2.3 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
