"""Many domains, one dot for each: its test loss under a method against the baseline's."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from robustmd.report.aggregate import Group
from robustmd.report.figures.drawing import MOST_PANELS, Drawing, chosen, grid, left_out_words
from robustmd.report.figures.figure_data import FigureData
from robustmd.report.figures.labels import log_labels, wrapped
from robustmd.report.names import is_many
from robustmd.report.paired import reference_for
from robustmd.report.style import Style, figure_style, figure_text, line_styles

SIDE = 2.8  # inches of a panel
FAINT = 200  # dots, of which more are drawn smaller
DOT: Style = {"linestyle": "", "marker": ".", "markeredgewidth": 0, "alpha": 0.5}
RING: Style = {"linestyle": "", "marker": "o", "markersize": 8, "color": "black"}
RING |= {"fillstyle": "none"}
Pair = tuple[Group, Group, Style]  # a method, its baseline, the method's look


def draw(data: FigureData) -> Drawing | None:
    """A panel for each method, all with the same two log axes; None where there are few domains, or
    nothing to compare with."""
    section = data.section
    looks = zip(section.mixtures, line_styles(section.mixtures), strict=True)
    found = ((group, reference_for(group, section), look) for group, look in looks)
    there = [(g, other, look) for g, other, look in found if other is not None and other is not g]
    if not is_many(section.domains) or not there:
        return None
    kept = {id(group) for group in chosen(section, [pair[0] for pair in there], MOST_PANELS)}
    pairs = [pair for pair in there if id(pair[0]) in kept]
    with figure_style():
        size = (SIDE, 0.95 * SIDE)
        figure, axes = grid(
            section.data, len(pairs), 3, size, (0.6, 0.5), share_x=True, share_y=True
        )
        ends = _limits(pairs)
        for axis, pair in zip(axes, pairs, strict=True):
            _panel(axis, *pair, ends)
    worst, below = [], []
    for group, other, _ in pairs:
        own = test_losses(group)
        worst.append(f"{group.label}: {section.domains[int(own.argmax())]}")
        below.append(f"{group.label} {(own < test_losses(other)).sum():,}")
    return Drawing(
        "domains",
        f"Every domain: the method against {section.baseline}",
        f"Each of the {len(section.domains):,} dots is a domain: its test loss [nats] under "
        f"{section.baseline} and under the method, means over each one's seeds, log axes. Below "
        "the diagonal the method is better. Ringed: the one with the method's largest "
        f"test loss ({'; '.join(worst)}).{left_out_words(section, len(pairs), len(there))}",
        f"Domains of {len(section.domains):,} with a smaller test loss than under "
        f"{section.baseline}: {'; '.join(below)}",
        figure,
    )


def test_losses(group: Group) -> np.ndarray:
    """[K] nats, the mean over the group's seeds."""
    return np.mean([one.means("loss", "test") for one in group.selected], axis=0)


def _panel(axis: Axes, group: Group, other: Group, look: Style, ends: tuple[float, float]) -> None:
    x, y = np.maximum(test_losses(other), ends[0]), np.maximum(test_losses(group), ends[0])
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.plot(ends, ends, color="0.6", linewidth=0.8, zorder=1)
    size = 3.0 if len(x) > FAINT else 6.0
    axis.plot(x, y, color=look["color"], markersize=size, zorder=2, **DOT)
    worst = int(y.argmax())
    axis.plot(x[worst], y[worst], zorder=3, **RING)
    axis.set(xlim=ends, ylim=ends, aspect="equal", xlabel=figure_text(other.label))
    axis.set_ylabel(wrapped(group.label, 30))
    log_labels(axis.xaxis, *ends)
    log_labels(axis.yaxis, *ends)


def _limits(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Of both axes: all dots, and a little room; a loss of 0 stands at the lower end."""
    values = np.concatenate([test_losses(group) for pair in pairs for group in pair[:2]])
    above = values[values > 0]
    return (float(above.min() / 1.2), float(above.max() * 1.2)) if len(above) else (0.1, 1.0)
