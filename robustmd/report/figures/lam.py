"""The influence of λ: the paper's discrepancy and drift for several λ, and what λ does to the worst
domain."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures import curves
from robustmd.report.figures.curves import Curve, Trace
from robustmd.report.figures.drawing import Drawing
from robustmd.report.figures.figure_data import FigureData, with_counts
from robustmd.report.figures.losses import RANGE, of_two_domains
from robustmd.report.figures.panels import Band, Line, Panel
from robustmd.report.names import is_many
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import UNSET, frozen
from robustmd.report.style import line_styles, ordered_styles, place_style

LAM = "method.lam"
ACROSS = {"color": "black", "linestyle": ":", "linewidth": 1.2, "marker": ""}  # the baseline
Sweep = tuple[Group, ...]  # the same in all but λ, by λ


def sweeps(section: Section) -> list[Sweep]:
    """Groups that differ in λ alone, where there are at least two values of it; in the table's
    order."""
    alike: dict[object, list[Group]] = defaultdict(list)
    for group in section.mixtures:
        if _lam(group):
            rest = {key: value for key, value in group.settings.items() if key != LAM}
            alike[frozen(rest)].append(group)
    return [tuple(sorted(groups, key=_lam)) for groups in alike.values() if len(groups) > 1]


def _lam(group: Group) -> float:
    """λ, where it is a number that a log axis can show; else 0."""
    lam = group.settings.get(LAM, UNSET)
    return lam if isinstance(lam, float) and 0 < lam < math.inf else 0.0


def names(found: Sequence[Sweep]) -> list[str]:
    """The methods, with a number where one was swept in several ways."""
    plain = [sweep[0].method for sweep in found]
    return [
        name if plain.count(name) == 1 else f"{name}, sweep {plain[: i + 1].count(name)}"
        for i, name in enumerate(plain)
    ]


def draw_curves(data: FigureData) -> Drawing | None:
    """Discrepancy and drift over the iterations: one line for each λ, one row for each method."""
    section = data.section
    found = sweeps(section)[:4]
    if not found or len(section.domains) < 2:
        return None
    values = sorted({_lam(group) for sweep in found for group in sweep})
    looks = dict(zip(values, ordered_styles(len(values)), strict=True))
    panels = []
    for name, sweep in zip(names(found), found, strict=True):
        labels = [f"λ = {_lam(group):g}" for group in sweep]
        styles = [looks[_lam(group)] for group in sweep]
        for what, ylabel, curve in _curves(section):
            lines = data.lines(sweep, curve, names=labels, styles=styles)
            panels.append(Panel(f"{name}: {what}", ylabel, lines, zero=True))
    if not any(panel.lines for panel in panels):
        return None
    left, right = (what for what, _, _ in _curves(section))
    return data.drawing(
        "lambda_curves",
        "Influence of λ over the iterations",
        f"{left.capitalize()} of the training losses (left) and {right} (right) for several λ, "
        "one row for each method.",
        panels,
        columns=2,
    )


def _curves(section: Section) -> tuple[tuple[str, str, Callable[[Trace], Curve]], ...]:
    """(what, label of the axis, values), left and right: the paper's first − last of two domains,
    or of many what all of them do."""
    if is_many(section.domains):
        effective = "effective number of domains"
        return (
            ("discrepancy", RANGE, curves.loss_range),
            (effective, "exp(H(p))", curves.effective_domains),
        )
    return (
        ("discrepancy", of_two_domains("f", section, " [nats]"), curves.discrepancy),
        ("drift of the weights", of_two_domains("p", section), curves.drift),
    )


def draw_worst(data: FigureData) -> Drawing | None:
    """Worst training loss and worst test accuracy against λ; the baseline's as a line across."""
    section = data.section
    found = sweeps(section)
    if not found:
        return None
    across = [g for g in section.groups if is_baseline(g, section.baseline)][:1]
    looks = [
        style | {"linestyle": place_style(place)["linestyle"]}
        for place, style in enumerate(line_styles([sweep[0] for sweep in found]))
    ]
    span = [f(_lam(group) for sweep in found for group in sweep) for f in (min, max)]

    def panel(title: str, ylabel: str, quantity: Quantity) -> Panel:
        lines = [
            Line(name, _over(data.kind, quantity, sweep, [_lam(group) for group in sweep]), look)
            for name, sweep, look in zip(names(found), found, looks, strict=True)
        ]
        for group in across:
            lines.append(Line(group.label, _over(data.kind, quantity, [group] * 2, span), ACROSS))
        return Panel(title, ylabel, with_counts(lines), xlabel="λ", log_x=True)

    panels = [
        panel("worst domain, training", "worst-case training loss [nats]", WORST_TRAIN_LOSS),
        panel("worst domain, test", "worst test accuracy [%]", WORST_TEST_ACCURACY),
    ]
    said = []
    for line in panels[1].lines[: len(found)]:
        points = zip(line.band.x, line.band.mean, strict=True)
        said.append(f"{line.label}: " + ", ".join(f"{x:g}: {y:.2f} %" for x, y in points))
    return data.drawing(
        "lambda_worst",
        "Influence of λ on the worst domain",
        "Worst-case training loss and worst test accuracy, as in the table, against λ (log axis; "
        "small λ follows the worst domain, large λ stays near the prior)."
        f"{f' Dotted: {across[0].label}.' if across else ''}",
        panels,
        alt=f"Worst test accuracy by λ: {'; '.join(said)}",
        names_below=True,
    )


def _over(
    kind: SpreadKind, quantity: Quantity, groups: Sequence[Group], x: Sequence[float]
) -> Band:
    """The quantity's means and spreads over seeds, a group at each `x`."""
    found = [group.estimate(quantity) for group in groups]
    mean = np.array([one.mean for one in found])
    half = np.array([one.spread(kind) or 0.0 for one in found])
    most = max(one.n for one in found)
    return Band(most, np.array(x), mean, mean - half, mean + half, mean - half)
