"""The adversary's weights over the iterations, and how many domains they amount to."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.bands import group_band
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import (
    MOST_LINES,
    band_words,
    chosen,
    group_lines,
    left_out_words,
    seeds_words,
)
from robustmd.report.figures.lines import Line, Panel, line_figure
from robustmd.report.figures.quantities import effective_domains, is_moving
from robustmd.report.figures.traces import Trace
from robustmd.report.figures.worst_case import endings
from robustmd.report.style import place_style

MOST_PANELS = 12


def draw_weights(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """A panel a method whose weights move, a line a domain."""
    there = moving(section, traces)
    groups = chosen(there, MOST_PANELS)
    if not groups:
        return None
    shown = section.domains[:MOST_LINES]
    panels = [_panel(group, shown, traces, kind) for group in groups]
    several = len({panel.lines[0].band.n for panel in panels}) > 1
    if several:
        panels = [_with_n(panel) for panel in panels]
    top = _top(panels)
    panels = [replace(panel, limits=(-0.03 * top, top)) for panel in panels]
    bands = [line.band for panel in panels for line in panel.lines]
    hidden = len(section.domains) - len(shown)
    more = f" The first {len(shown)} of {len(section.domains)} domains." if hidden else ""
    return Drawn(
        "weights",
        "Weights of the domains",
        "Weight p_k that iteration t gave to each domain, of the methods that move it. "
        f"{band_words(bands, kind)}{more}{left_out_words(len(groups), len(there))}",
        "Weights over iterations; at the end: "
        + "; ".join(f"{panel.title}: {endings(panel.lines)}" for panel in panels),
        line_figure(section.data, panels, columns=3 if len(panels) > 4 else 2, share_y=True),
    )


def draw_effective(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """exp(H(p_t)) of every mixture that recorded weights."""
    groups = chosen(section.mixtures)
    if len(section.domains) < 2 or not any(_moves(group, traces) for group in groups):
        return None
    lines = group_lines(groups, traces, effective_domains, kind)
    many = len(section.domains)
    panel = Panel(
        "weights", "effective number of domains, exp(H(p))", lines, limits=(0.9, many + 0.1 * many)
    )
    return Drawn(
        "effective_domains",
        "Effective number of domains",
        f"exp(H(p_t)), the exponential of the weights' entropy: {many} for the same weight on all "
        f"{many} domains, 1 for all weight on one. {seeds_words(lines, kind)}"
        f"{left_out_words(len(lines), len(section.mixtures))}",
        f"Effective number of domains over iterations; at the end: {endings(lines)}",
        line_figure(section.data, [panel]),
    )


def moving(section: Section, traces: Sequence[Trace]) -> list[Group]:
    """The mixtures whose weights change in a run."""
    return [group for group in section.mixtures if _moves(group, traces)]


def _moves(group: Group, traces: Sequence[Trace]) -> bool:
    paths = {run.path for run in group.runs}
    return any(trace.run.path in paths and is_moving(trace) for trace in traces)


def _panel(
    group: Group, domains: Sequence[str], traces: Sequence[Trace], kind: SpreadKind
) -> Panel:
    lines = tuple(
        Line(name, group_band(group, traces, partial(_weight, place=k), kind), place_style(k))
        for k, name in enumerate(domains)
    )
    return Panel(group.label, "weight p", lines)


def _weight(trace: Trace, place: int) -> tuple[np.ndarray, np.ndarray]:
    return trace.steps, trace.weights[:, place]


def _top(panels: Sequence[Panel]) -> float:
    """The end of the common axis: 1 for few domains, less where all weights are small."""
    largest = max(line.band.high.max() for panel in panels for line in panel.lines)
    return float(min(1.0, 1.2 * largest)) * 1.03


def _with_n(panel: Panel) -> Panel:
    return replace(panel, title=f"{panel.title} (n = {panel.lines[0].band.n})")
