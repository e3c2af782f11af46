"""The adversary's weights over the iterations, and how many domains they amount to."""

from collections.abc import Sequence
from dataclasses import replace

from robustmd.report.aggregate import Group
from robustmd.report.figures import curves
from robustmd.report.figures.curves import Curve, Trace
from robustmd.report.figures.drawing import (
    MOST_LINES,
    MOST_PANELS,
    Drawn,
    chosen,
)
from robustmd.report.figures.losses import of_two_domains
from robustmd.report.figures.panels import Line, Panel
from robustmd.report.figures.recorded import Recorded
from robustmd.report.names import is_many
from robustmd.report.style import place_style

RANK = "domain, by its weight"


def draw(runs: Recorded) -> Drawn | None:
    """A panel a method whose weights move, a line a domain; of many domains see `_sorted`."""
    if not runs.moving:
        return None
    return _sorted(runs) if is_many(runs.section.domains) else _by_domain(runs)


def _by_domain(runs: Recorded) -> Drawn:
    section = runs.section
    groups = chosen(section, runs.moving, MOST_PANELS)
    shown = section.domains[:MOST_LINES]
    panels = [_panel(runs, group, shown) for group in groups]
    if len({panel.lines[0].band.n for panel in panels}) > 1:
        panels = [replace(p, title=f"{p.title} (n = {p.lines[0].band.n})") for p in panels]
    lines = [line for panel in panels for line in panel.lines]
    top = 1.03 * min(1.0, 1.2 * max(float(line.band.high.max()) for line in lines))
    panels = [replace(panel, limits=(-0.03 * top, top)) for panel in panels]
    hidden = len(section.domains) - len(shown)
    more = f" The first {len(shown)} of {len(section.domains)} domains." if hidden else ""
    return runs.drawn(
        "weights",
        "Weights of the domains",
        "Weight p_k that iteration t gave to each domain, of the methods that move it.",
        panels,
        runs.moving,
        shown=groups,
        more=more,
        share_y=True,
    )


def _panel(runs: Recorded, group: Group, domains: Sequence[str]) -> Panel:
    def weight_of(place: int) -> Line:
        def weight(trace: Trace) -> Curve:
            return trace.steps, trace.weights[:, place]

        return Line(domains[place], runs.band(group, weight), place_style(place))

    return Panel(group.label, "weight p", tuple(map(weight_of, range(len(domains)))))


def _sorted(runs: Recorded) -> Drawn:
    """From the largest weight to the smallest: who is played, not which name. A line a method:
    K·p_k by rank, and what the r largest hold together."""
    section = runs.section
    groups, count = chosen(section, section.mixtures), len(section.domains)
    sizes = runs.lines(groups, curves.sorted_weights)
    sums = runs.lines(groups, curves.cumulated_weights)
    half = (f"{a.label} {int((a.band.mean < 0.5 - 1e-9).sum()) + 1:,}" for a in sums)
    return runs.drawn(
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


def effective_domains(runs: Recorded) -> Drawn | None:
    """exp(H(p_t)) of every mixture that recorded weights."""
    section, many = runs.section, len(runs.section.domains)
    groups = chosen(section, section.mixtures)
    if many < 2 or not set(map(id, groups)) & set(map(id, runs.moving)):
        return None
    title, ylabel = "Effective number of domains", "effective number of domains, exp(H(p))"
    lines = runs.lines(groups, curves.effective_domains)
    return runs.drawn(
        "effective_domains",
        title,
        f"exp(H(p_t)), the exponential of the weights' entropy: {many} for the same weight on all "
        f"{many} domains, 1 for all weight on one.",
        [Panel("weights", ylabel, lines, limits=(0.9, 1.1 * many))],
        section.mixtures,
    )


def drift(runs: Recorded) -> Drawn | None:
    """The paper's p_a − p_b of the weights that each iteration used; not of many domains."""
    section = runs.section
    lines = runs.lines(chosen(section, section.mixtures), curves.drift)
    moving = any(line.band.mean.std() > 0 for line in lines)
    if is_many(section.domains) or len(section.domains) < 2 or not moving:
        return None
    return runs.drawn(
        "drift",
        "Drift of the weights",
        f"p_a − p_b of the weights used in iteration t, with a = {section.domains[0]}, the first, "
        f"and b = {section.domains[-1]}, the last domain of the data set: −1 or 1 is all weight on "
        "one of them, 0 the same weight.",
        [Panel("weights", of_two_domains("p", section), lines, zero=True)],
        section.mixtures,
    )
