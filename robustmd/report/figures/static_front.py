"""Fixed weights against learned ones: one domain's loss against the other's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from robustmd.report.aggregate import Group
from robustmd.report.estimate import SPREAD_WORDS, SpreadKind
from robustmd.report.figures.drawing import Drawing, chosen, grid, left_out_words
from robustmd.report.figures.figure_data import FigureData
from robustmd.report.figures.labels import add_legend, log_labels
from robustmd.report.front import Fixed, Front
from robustmd.report.numbers import range_text
from robustmd.report.quantities import WORST_TRAIN_LOSS, Quantity
from robustmd.report.style import Style, figure_style, figure_text, line_styles

NEAR = 2.0  # times the star's worst training loss: beyond it a method would only take up the room
BELOW = (
    f" Below, on linear axes: around the star and the learned methods that have at most {NEAR:g} "
    "times its worst training loss."
)
SPLITS = (("train", "training"), ("test", "test"))
FIXED: Style = {"color": "0.45", "marker": "o", "markersize": 3.5, "zorder": 2}
BEST: Style = {"color": "black", "marker": "*", "markersize": 12, "markerfacecolor": "none"}
BEST |= {"linestyle": "", "zorder": 5}
LEARNED: Style = {"markersize": 5, "alpha": 0.9, "zorder": 4}
EQUAL: Style = {"color": "0.8", "linestyle": ":", "linewidth": 1.0, "zorder": 1}


def draw(data: FigureData) -> Drawing | None:
    """K = 2: f_b against f_a, the fixed weights joined in the order of p_a. K > 2: the worst
    domain's loss against the mean over the domains, the fixed weights as dots."""
    front, section = data.report.front, data.section
    if front is None:
        return None
    shown = chosen(section, front.learned)
    looks = [style | {"linestyle": ""} for style in line_styles(shown)]
    learned = list(zip(shown, looks, strict=True))
    near = _near(front, shown)
    every = [front.best.group, *(point.group for point in front.points), *shown]
    with figure_style():
        height = 3.8 if shown else 4.4
        figure, axes = grid(section.data, 4 if shown else 2, 2, (4.2, height), (0.0, 0.0))
        for place, axis in enumerate(axes):
            split, title = SPLITS[place % 2]
            plane = _Plane(axis, front, split, data.kind)
            plane.scale(near if place > 1 else every, zoomed=place > 1)
            plane.fill(learned)
            axis.set_title(f"{title} loss [nats]{', near the star' if place > 1 else ''}")
        line = FIXED | {"linestyle": "-" if _is_pair(front) else ""}
        entries = [("fixed weights", line), ("best fixed weights", BEST)]
        entries += [(group.label, look) for group, look in learned]
        add_legend(figure, entries, 5)
    n = range_text(len(group.runs) for group in every)
    bars = f"Markers: mean over n = {n} seeds; bars: ± {SPREAD_WORDS[data.kind]}."
    return Drawing(
        "static_front",
        "Fixed weights against learned ones",
        f"{_what(front)}{BELOW if shown else ''} {'n = 1 seed: no bars.' if n == '1' else bars} "
        "Star: the fixed weights with the smallest mean worst training loss, chosen on these runs, "
        f"which favours them. {front.answer}"
        f"{left_out_words(section, len(shown), len(front.learned))}",
        front.answer,
        figure,
    )


@dataclass(frozen=True)
class _Plane:
    """Axes with a loss to the right and another upwards. What is drawn in them lies in the limits
    that they have: a bar is cut at the edge, a loss of 0 stands at the lower end of a log axis."""

    axis: Axes
    front: Front
    split: str
    kind: SpreadKind

    @property
    def quantities(self) -> tuple[Quantity, Quantity]:
        if _is_pair(self.front):
            first, last = self.front.domains
            return Quantity("loss", self.split, first), Quantity("loss", self.split, last)
        return Quantity("loss", self.split, over="mean"), Quantity("loss", self.split)

    @property
    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self.axis.get_xlim(), self.axis.get_ylim()

    def scale(self, groups: Sequence[Group], *, zoomed: bool) -> None:
        """Log axes around the means and bars of these groups; `zoomed`: linear ones around the
        means. At least a tenth of room to either side."""
        for quantity, name in zip(self.quantities, "xy", strict=True):
            found = [group.estimate(quantity) for group in groups]
            means = [one.mean for one in found if one.mean > 0] or [1.0]
            bars = [] if zoomed else [one.mean + (one.spread(self.kind) or 0.0) for one in found]
            low, high = min(means), max(*means, *bars, 0.0)
            room = max(1.1, (high / low) ** 0.15)
            if not zoomed:
                self.axis.set(**{f"{name}scale": "log"})
            self.axis.set(**{f"{name}lim": (low / room, high * room)})
        if zoomed:
            self.axis.locator_params(nbins=5)
        else:
            for axis, ends in zip((self.axis.xaxis, self.axis.yaxis), self.limits, strict=True):
                log_labels(axis, *ends)

    def fill(self, learned: Sequence[tuple[Group, Style]]) -> None:
        """All that is in the figure."""
        front, axis = self.front, self.axis
        right, up = "mean over the domains", "worst domain"
        if _is_pair(front):
            right, up = (f"on {name}" for name in front.domains)
            places = filter(None, (self._place(point.group) for point in front.points))
            line = np.array(list(places)).reshape(-1, 2).T
            axis.plot(*line, color=FIXED["color"], linewidth=1.2, zorder=2)
            lows, highs = zip(*self.limits, strict=True)
            same = (max(lows), min(highs)) if max(lows) < min(highs) else ()
            axis.plot(same, same, **EQUAL)
            named = (front.points[0], front.points[-1], front.best)
            for point in {point.weights: point for point in named}.values():
                self._name(point)
        for point in front.points:
            self._mark(point.group, FIXED | {"linestyle": ""})
        for group, look in learned:
            self._mark(group, look | LEARNED)
        self._mark(front.best.group, BEST)
        axis.set_xlabel(figure_text(right))
        axis.set_ylabel(figure_text(up))

    def _place(self, group: Group) -> tuple[float, float] | None:
        """Where the group stands; None where that is outside."""
        means = [group.estimate(quantity).mean for quantity in self.quantities]
        if self.axis.get_xscale() == "log":
            means = [max(mean, low) for mean, (low, _) in zip(means, self.limits, strict=True)]
        x, y = means
        (left, right), (bottom, top) = self.limits
        return (x, y) if left <= x <= right and bottom <= y <= top else None

    def _mark(self, group: Group, look: Style) -> None:
        at = self._place(group)
        if at is None:
            return
        (x, y), (across, up) = at, self.limits
        wide, high = (group.estimate(q).spread(self.kind) or 0.0 for q in self.quantities)
        bar: Style = {"color": look["color"], "linewidth": 0.7, "zorder": look["zorder"]}
        self.axis.plot(np.clip([x - wide, x + wide], *across), [y, y], **bar)
        self.axis.plot([x, x], np.clip([y - high, y + high], *up), **bar)
        self.axis.plot(x, y, **look)

    def _name(self, point: Fixed) -> None:
        """The point's weights beside it."""
        at = self._place(point.group)
        if at is not None:
            text = f"({', '.join(f'{weight:.3g}' for weight in point.weights)})"
            beside: Style = {"xytext": (5, 6), "textcoords": "offset points"}
            self.axis.annotate(text, at, fontsize=7, color="0.3", **beside)


def _is_pair(front: Front) -> bool:
    return len(front.domains) == 2


def _near(front: Front, shown: Sequence[Group]) -> list[Group]:
    """The best fixed weights, and the learned ones that are about as good or better."""
    best = front.best.group
    most = NEAR * best.estimate(WORST_TRAIN_LOSS).mean
    return [best, *(group for group in shown if group.estimate(WORST_TRAIN_LOSS).mean <= most)]


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
