"""The adversary's weights over the iterations, and how many domains they amount to."""

from collections.abc import Sequence
from dataclasses import replace

from robustmd.report.aggregate import Group
from robustmd.report.figures import curves
from robustmd.report.figures.curves import Curve, Trace
from robustmd.report.figures.drawing import (
    MOST_LINES,
    MOST_PANELS,
    Drawing,
    chosen,
)
from robustmd.report.figures.figure_data import FigureData
from robustmd.report.figures.losses import of_two_domains
from robustmd.report.figures.panels import Line, Panel
from robustmd.report.names import is_many
from robustmd.report.style import place_style

RANK = "domain, by its weight"


def draw(data: FigureData) -> Drawing | None:
    """One panel for each method whose weights move, one line for each domain; of many domains
    see `_sorted`."""
    if not data.moving:
        return None
    return _sorted(data) if is_many(data.section.domains) else _by_domain(data)


def _by_domain(data: FigureData) -> Drawing:
    section = data.section
    groups = chosen(section, data.moving, MOST_PANELS)
    shown = section.domains[:MOST_LINES]
    panels = [_panel(data, group, shown) for group in groups]
    if len({panel.lines[0].band.n for panel in panels}) > 1:
        panels = [replace(p, title=f"{p.title} (n = {p.lines[0].band.n})") for p in panels]
    lines = [line for panel in panels for line in panel.lines]
    top = 1.03 * min(1.0, 1.2 * max(float(line.band.high.max()) for line in lines))
    panels = [replace(panel, limits=(-0.03 * top, top)) for panel in panels]
    hidden = len(section.domains) - len(shown)
    more = f" The first {len(shown)} of {len(section.domains)} domains." if hidden else ""
    return data.drawing(
        "weights",
        "Weights of the domains",
        "Weight p_k that iteration t gave to each domain, of the methods that move it.",
        panels,
        data.moving,
        shown=groups,
        more=more,
        share_y=True,
    )


def _panel(data: FigureData, group: Group, domains: Sequence[str]) -> Panel:
    def weight_of(place: int) -> Line:
        def weight(trace: Trace) -> Curve:
            return trace.steps, trace.weights[:, place]

        return Line(domains[place], data.band(group, weight), place_style(place))

    return Panel(group.label, "weight p", tuple(map(weight_of, range(len(domains)))))


def _sorted(data: FigureData) -> Drawing:
    """From the largest weight to the smallest: which shares are played, not by whom. One line for
    each method: K·p_k by rank, and what the r largest hold together."""
    section = data.section
    groups, count = chosen(section, section.mixtures), len(section.domains)
    sizes = data.lines(groups, curves.sorted_weights)
    sums = data.lines(groups, curves.cumulated_weights)
    half = (f"{a.label} {int((a.band.mean < 0.5 - 1e-9).sum()) + 1:,}" for a in sums)
    return data.drawing(
        "weights",
        "Weights of the domains, sorted",
        f"The last recorded weights of the {count:,} domains, sorted within each run. Left: K·p_k, "
        "1 for the same weight on all; right: what the r domains with the largest weights hold "
        "together.",
        [
            Panel("weights, largest first", "K·p (same for all: 1)", sizes, xlabel=RANK),
            Panel("together", "weight of the first r domains", sums, xlabel=RANK, limits=(0, 1.05)),
        ],
        section.mixtures,
        alt=f"Of {count:,} domains half of the weight is on: {', '.join(half)}",
        names_below=True,
    )


def effective_domains(data: FigureData) -> Drawing | None:
    """exp(H(p_t)) of every mixture that recorded weights."""
    section, many = data.section, len(data.section.domains)
    groups = chosen(section, section.mixtures)
    if many < 2 or not set(map(id, groups)) & set(map(id, data.moving)):
        return None
    title, ylabel = "Effective number of domains", "effective number of domains, exp(H(p))"
    lines = data.lines(groups, curves.effective_domains)
    return data.drawing(
        "effective_domains",
        title,
        f"exp(H(p_t)), the exponential of the weights' entropy: {many} for the same weight on all "
        f"{many} domains, 1 for all weight on one.",
        [Panel("weights", ylabel, lines, limits=(0.9, 1.1 * many))],
        section.mixtures,
    )


def drift(data: FigureData) -> Drawing | None:
    """The paper's p_a − p_b of the weights that each iteration used; not of many domains."""
    section = data.section
    lines = data.lines(chosen(section, section.mixtures), curves.drift)
    moving = any(line.band.mean.std() > 0 for line in lines)
    if is_many(section.domains) or len(section.domains) < 2 or not moving:
        return None
    return data.drawing(
        "drift",
        "Drift of the weights",
        f"p_a − p_b of the weights used in iteration t, with a = {section.domains[0]}, the first, "
        f"and b = {section.domains[-1]}, the last domain of the data set: −1 or 1 is all weight on "
        "one of them, 0 the same weight.",
        [Panel("weights", of_two_domains("p", section), lines, zero=True)],
        section.mixtures,
    )
