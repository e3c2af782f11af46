"""One loss against another: fixed weights against learned ones, many domains under two methods."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from robustmd.report.aggregate import Group
from robustmd.report.estimate import SPREAD_WORDS, Estimate, SpreadKind, range_text
from robustmd.report.figures.drawing import (
    Drawing,
    add_legend,
    chosen,
    grid,
    left_out_words,
    log_labels,
    wrapped,
)
from robustmd.report.figures.lines import FigureData
from robustmd.report.front import Front
from robustmd.report.names import is_many
from robustmd.report.paired import reference_for
from robustmd.report.quantities import Quantity
from robustmd.report.style import Style, figure_style, figure_text, line_styles

SIDE = 2.8  # inches of a panel with dots
FAINT = 200  # dots, of which more are drawn smaller
DOT: Style = {"linestyle": "", "marker": ".", "markeredgewidth": 0, "alpha": 0.5, "zorder": 2}
RING: Style = {"linestyle": "", "marker": "o", "markersize": 8, "color": "black"}
RING |= {"fillstyle": "none", "zorder": 3}

SPLITS = {"train": "training", "test": "test"}
FIXED: Style = {"color": "0.45", "marker": "o", "markersize": 3.5, "zorder": 2, "linestyle": ""}
BEST: Style = {"color": "black", "marker": "*", "markersize": 12, "markerfacecolor": "none"}
BEST |= {"linestyle": "", "zorder": 5}
LEARNED: Style = {"linestyle": "", "markersize": 5, "alpha": 0.9, "zorder": 4}
EQUAL: Style = {"color": "0.8", "linestyle": ":", "linewidth": 1.0, "zorder": 1}


def static_front(data: FigureData) -> Drawing | None:
    """K = 2: f_b against f_a, the fixed weights joined in the order of p_a. K > 2: the worst
    domain's loss against the mean over the domains, the fixed weights as dots."""
    front, section = data.report.front, data.section
    if front is None:
        return None
    shown = chosen(section, front.learned)
    learned = [(g, look | LEARNED) for g, look in zip(shown, line_styles(shown), strict=True)]
    fixed = [(group, FIXED) for group in front.points.values()]
    looks = [*fixed, *learned, (front.points[front.best], BEST)]
    with figure_style():
        figure, axes = grid(section.data, 2, 2, (4.2, 3.5))
        for axis, (split, title) in zip(axes, SPLITS.items(), strict=True):
            _plane(axis, front, split, looks)
            axis.set_title(f"{title} loss{data.unit}")
        named = {"fixed weights": FIXED, "best fixed weights": BEST}
        named |= {group.label: look for group, look in learned}
        add_legend(figure, {name: Line2D([], [], **look) for name, look in named.items()})
    n = range_text(len(group.runs) for group, _ in looks)
    bars = f"Markers: mean over n = {n} seeds; bars: ± {SPREAD_WORDS[data.kind]}."
    return Drawing(
        "static_front",
        "Fixed weights against learned ones",
        f"{_what(front)} {'n = 1 seed: no bars.' if n == '1' else bars} "
        "Star: the fixed weights with the smallest mean worst training loss, chosen on these runs, "
        f"which favours them. {front.answer}"
        f"{left_out_words(section, len(shown), len(front.learned))}",
        figure,
        front.answer,
    )


def _plane(axis: Axes, front: Front, split: str, looks: Sequence[tuple[Group, Style]]) -> None:
    """Log axes around all means and bars. A loss of 0 and what a bar has below stand at the lower
    end."""
    domains, kind = front.section.domains, front.section.spread
    quantities = [Quantity("loss", split, over="mean"), Quantity("loss", split)]
    names = ["mean over the domains", "worst domain"]
    if len(domains) == 2:
        quantities = [Quantity("loss", split, domain) for domain in domains]
        names = [f"on {domain}" for domain in domains]
    found = {id(group): [group.estimate(one) for one in quantities] for group, _ in looks}
    ends = [_ends(ones, kind) for ones in zip(*found.values(), strict=True)]
    lows = np.array(ends)[:, 0]
    axis.set(xlim=ends[0], ylim=ends[1], xscale="log", yscale="log")

    def place(group: Group) -> np.ndarray:
        """(right, up)."""
        return np.maximum([one.mean for one in found[id(group)]], lows)

    for group, look in looks:
        at = place(group)
        spreads = np.array([one.spread(kind) or 0.0 for one in found[id(group)]])
        low, high = np.maximum(at - spreads, lows), at + spreads
        bar: Style = {"color": look["color"], "linewidth": 0.7, "zorder": look["zorder"]}
        axis.plot([low[0], high[0]], [at[1], at[1]], **bar)
        axis.plot([at[0], at[0]], [low[1], high[1]], **bar)
        axis.plot(*at, **look)
    if len(domains) == 2:
        line = np.array([place(group) for group in front.points.values()])
        axis.plot(*line.T, color=FIXED["color"], linewidth=1.2, zorder=2)
        same = max(lows), min(high for _, high in ends)
        if same[0] < same[1]:
            axis.plot(same, same, **EQUAL)
        for weights in dict.fromkeys((*list(front.points)[:: len(front.points) - 1], front.best)):
            text = f"({', '.join(f'{weight:.3g}' for weight in weights)})"
            beside: Style = {"xytext": (5, 6), "textcoords": "offset points"}
            right, up = place(front.points[weights])
            axis.annotate(text, (right, up), fontsize=7, color="0.3", **beside)
    axis.set(xlabel=figure_text(names[0]), ylabel=figure_text(names[1]))
    log_labels(axis.xaxis, *ends[0])
    log_labels(axis.yaxis, *ends[1])


def _ends(found: Sequence[Estimate], kind: SpreadKind) -> tuple[float, float]:
    """Of an axis that holds the means, and the bars above them; with a tenth of room."""
    low = min((one.mean for one in found if one.mean > 0), default=1.0)
    high = max(low, *(one.mean + (one.spread(kind) or 0.0) for one in found))
    room = max(1.1, (high / low) ** 0.15)
    return low / room, high * room


def _what(front: Front) -> str:
    if len(front.section.domains) > 2:
        return (
            "The worst domain's loss (within each run) against the mean over the domains, log axes."
            f" Gray: {len(front.points)} fixed weights."
        )
    first, last = front.section.domains
    return (
        f"Loss on {last} against loss on {first}, log axes, with the weights (p_a, p_b) for "
        f"a = {first} and b = {last} beside the line's ends and its best point. Line: "
        f"{len(front.points)} fixed weights in the order of p_a; dotted: equal losses."
    )


def every_domain(data: FigureData) -> Drawing | None:
    """Many domains, one dot for each: its test loss under a method against the baseline's. A panel
    for each method, all with the same two log axes."""
    section = data.section
    pairs = {}  # a method: its own losses, and those of the runs that it is compared with
    for group in section.mixtures:
        other = reference_for(group, section)
        if other is not None and other is not group:
            pairs[group.label] = (_test_losses(group), _test_losses(other), other.label)
    shown = [g for g in chosen(section, section.mixtures) if g.label in pairs]
    if not is_many(section.domains) or not shown:
        return None
    every = np.concatenate([losses for *both, _ in pairs.values() for losses in both])
    above = every[every > 0]
    ends = (float(above.min() / 1.2), float(above.max() * 1.2)) if len(above) else (0.1, 1.0)
    looks = dict(zip(map(id, section.mixtures), line_styles(section.mixtures), strict=True))
    worst, below = [], []
    with figure_style():
        size = (SIDE, 0.95 * SIDE)
        figure, axes = grid(section.data, len(shown), 3, size, (0.6, 0.5), sharex=True, sharey=True)
        for axis, group in zip(axes, shown, strict=True):
            own, theirs, name = pairs[group.label]
            x, y = np.maximum(theirs, ends[0]), np.maximum(own, ends[0])
            look = {"color": looks[id(group)]["color"], "markersize": 3 if len(x) > FAINT else 6}
            axis.plot(x, y, **DOT, **look)
            axis.plot(x[own.argmax()], y[own.argmax()], **RING)
            axis.plot(ends, ends, color="0.6", linewidth=0.8, zorder=1)
            axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
            axis.set(xlabel=figure_text(name), ylabel=wrapped(group.label, 30))
            log_labels(axis.xaxis, *ends)
            log_labels(axis.yaxis, *ends)
            worst.append(f"{group.label}: {section.domains[own.argmax()]}")
            below.append(f"{group.label} {(own < theirs).sum():,}")
    return Drawing(
        "domains",
        f"Every domain: the method against {section.baseline}",
        f"Each of the {len(section.domains):,} dots is a domain: its test loss{data.unit} under "
        f"{section.baseline} and under the method, means over each one's seeds, log axes. Below "
        "the diagonal the method is better. Ringed: the one with the method's largest "
        f"test loss ({'; '.join(worst)}).{left_out_words(section, len(shown), len(pairs))}",
        figure,
        f"Domains of {len(section.domains):,} with a smaller test loss than under "
        f"{section.baseline}: {'; '.join(below)}",
    )


def _test_losses(group: Group) -> np.ndarray:
    """[K], the mean over the group's seeds."""
    return np.mean([one.means("loss", "test") for one in group.selected], axis=0)
