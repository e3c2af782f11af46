"""Fixed weights against learned ones: one domain's loss against the other's."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.aggregate import Group
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.bands import KINDS
from robustmd.report.figures.bars import axes_of
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, left_out_words
from robustmd.report.figures.lines import add_legend
from robustmd.report.front import Fixed, Front
from robustmd.report.quantities import Quantity
from robustmd.report.style import Style, figure_style, figure_text, line_styles

NEAR = 2.0  # times the star's worst training loss: beyond it a method would only take up the room
BELOW = (
    f" Below, on linear axes: around the star and the learned methods that have at most {NEAR:g} "
    "times its worst training loss."
)
SPLITS = (("train", "training"), ("test", "test"))
FIXED: Style = {"color": "0.45", "marker": "o", "markersize": 3.5}
BEST: Style = {
    "color": "black",
    "marker": "*",
    "markersize": 12,
    "markerfacecolor": "none",
    "linestyle": "",
}


def draw(data: str, front: Front | None, kind: SpreadKind) -> Drawn | None:
    """K = 2: f_b against f_a, the fixed weights joined in the order of p_a. K > 2: the worst
    domain's loss against the mean over the domains, the fixed weights as dots."""
    if front is None:
        return None
    shown = chosen(front.learned)
    looks = [style | {"linestyle": ""} for style in line_styles(shown)]
    with figure_style():
        figure = Figure(figsize=(8.4, 7.6 if shown else 4.4), layout="constrained")
        figure.subplots(2 if shown else 1, 2)
        whole, near = axes_of(figure)[:2], axes_of(figure)[2:]
        learned = list(zip(shown, looks, strict=True))
        every = [front.best.group, *(point.group for point in front.points), *shown]
        for axis, (split, title) in zip((*whole, *near), SPLITS * 2, strict=False):
            zoomed = axis in near
            _scale(axis, _near(front, shown) if zoomed else every, front, split, kind, zoomed)
            _panel(axis, front, split, kind, learned)
            axis.set_title(f"{title} loss [nats]{', near the star' if zoomed else ''}")
        figure.suptitle(figure_text(data), fontsize=10)
        line = FIXED | {"linestyle": "-" if _is_pair(front) else ""}
        entries = [("fixed weights", line), ("best fixed weights", BEST)]
        entries += [(group.label, look) for group, look in zip(shown, looks, strict=True)]
        add_legend(figure, entries, 5)
    return Drawn(
        "static_front",
        "Fixed weights against learned ones",
        f"{_what(front)}{BELOW if shown else ''} {_spread(front, shown, kind)} Star: the fixed "
        "weights with the smallest mean worst training loss, chosen on these runs, "
        "which favours them. "
        f"{front.answer}{left_out_words(len(shown), len(front.learned))}",
        front.answer,
        figure,
    )


def _is_pair(front: Front) -> bool:
    return len(front.domains) == 2


def _axes(front: Front, split: str) -> tuple[Quantity, Quantity]:
    """What is drawn to the right and what upwards."""
    if _is_pair(front):
        first, last = front.domains
        return Quantity("loss", split, first), Quantity("loss", split, last)
    return Quantity("loss", split, over="mean"), Quantity("loss", split)


def _panel(
    axis: Axes,
    front: Front,
    split: str,
    kind: SpreadKind,
    learned: Sequence[tuple[Group, Style]],
) -> None:
    """What lies in the axes as they are; a bar is cut at their edge."""
    x, y = _axes(front, split)
    if _is_pair(front):
        means = [[point.group.estimate(q).mean for point in front.points] for q in (x, y)]
        line = _within(axis, *np.array(means))
        axis.plot(*line, color=FIXED["color"], linewidth=1.2, zorder=2)
        for point in (front.points[0], front.points[-1]):
            _name(axis, point, x, y)
    for point in front.points:
        _mark(axis, point.group, x, y, kind, FIXED | {"linestyle": "", "zorder": 2})
    for group, look in learned:
        _mark(axis, group, x, y, kind, look | {"markersize": 5, "alpha": 0.9, "zorder": 4})
    _mark(axis, front.best.group, x, y, kind, BEST | {"zorder": 5})
    _name(axis, front.best, x, y)
    if _is_pair(front):
        lows, highs = zip(axis.get_xlim(), axis.get_ylim(), strict=True)
        same = (max(lows), min(highs)) if max(lows) < min(highs) else ()
        look = {"color": "0.8", "linestyle": ":", "linewidth": 1.0, "zorder": 1}
        axis.plot(same, same, **look)
    names = [f"on {name}" for name in front.domains]
    right, up = names if _is_pair(front) else ("mean over the domains", "worst domain")
    axis.set_xlabel(figure_text(right))
    axis.set_ylabel(figure_text(up))


def _near(front: Front, shown: Sequence[Group]) -> list[Group]:
    """The best fixed weights, and the learned ones that are about as good or better."""
    worst, best = Quantity("loss", "train"), front.best.group
    most = NEAR * best.estimate(worst).mean
    return [best, *(group for group in shown if group.estimate(worst).mean <= most)]


def _scale(
    axis: Axes, groups: Sequence[Group], front: Front, split: str, kind: SpreadKind, zoomed: bool
) -> None:
    """Log axes around the means and bars of these groups; `zoomed`: linear ones around the means.
    At least a tenth of room to either side; a loss of 0 stands at the lower end."""
    for quantity, name in zip(_axes(front, split), "xy", strict=True):
        found = [group.estimate(quantity) for group in groups]
        means = [one.mean for one in found if one.mean > 0] or [1.0]
        bars = [] if zoomed else [one.mean + (one.spread(kind) or 0.0) for one in found]
        low, high = min(means), max(*means, *bars, 0.0)
        room = max(1.1, (high / low) ** 0.15)
        if not zoomed:
            axis.set(**{f"{name}scale": "log"})
        axis.set(**{f"{name}lim": (low / room, high * room)})
    if zoomed:
        axis.locator_params(nbins=5)


def _within(axis: Axes, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points that lie in the axes; those of a loss of 0 at the lower end of log axes."""
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    if axis.get_xscale() == "log":
        x, y = np.maximum(x, left), np.maximum(y, bottom)
    inside = (left <= x) & (x <= right) & (bottom <= y) & (y <= top)
    return x[inside], y[inside]


def _mark(
    axis: Axes, group: Group, x: Quantity, y: Quantity, kind: SpreadKind, look: Style
) -> None:
    across, up = group.estimate(x), group.estimate(y)
    at = _within(axis, np.array([across.mean]), np.array([up.mean]))
    if not len(at[0]):
        return
    bars = []
    for one, middle, (low, high) in zip(
        (across, up), at, (axis.get_xlim(), axis.get_ylim()), strict=True
    ):
        half = one.spread(kind)
        ends = (np.minimum(half, middle - low), np.minimum(half, high - middle)) if half else None
        bars.append(ends)
    axis.errorbar(*at, bars[1], bars[0], elinewidth=0.7, **look)


def _name(axis: Axes, point: Fixed, x: Quantity, y: Quantity) -> None:
    """The point's weights beside it, for two domains."""
    if len(point.weights) > 2:
        return
    means = (np.array([point.group.estimate(quantity).mean]) for quantity in (x, y))
    at = _within(axis, *means)
    if not len(at[0]):
        return
    text = f"({', '.join(f'{weight:.3g}' for weight in point.weights)})"
    axis.annotate(
        text, (at[0][0], at[1][0]), (5, 6), textcoords="offset points", fontsize=7, color="0.3"
    )


def _what(front: Front) -> str:
    if not _is_pair(front):
        return (
            "The worst domain's loss (within each run) against the mean over the domains, log axes."
            f" Gray: {len(front.points)} fixed weights."
        )
    first, last = front.domains
    return (
        f"Loss on {last} against loss on {first}, log axes, with the weights (p_a, p_b) for "
        f"a = {first} and b = {last} beside the line's ends and its best point. Line: "
        f"{len(front.points)} fixed weights in the order of p_a; dotted: equal losses."
    )


def _spread(front: Front, shown: Sequence[Group], kind: SpreadKind) -> str:
    """What a marker and its bars are."""
    counts = sorted({len(group.runs) for group in (*shown, *(p.group for p in front.points))})
    if counts == [1]:
        return "n = 1 seed: no bars."
    seeds = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"Markers: mean over n = {seeds} seeds; bars: {KINDS[kind]}."
