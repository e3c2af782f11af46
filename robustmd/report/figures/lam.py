"""The influence of λ: the paper's discrepancy and drift for several λ, and what λ does to the worst
domain."""

import math
from collections import defaultdict
from collections.abc import Sequence

import pandas as pd

from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.figures.drawing import Drawing
from robustmd.report.figures.lines import FigureData, Line, Panel, Values, with_counts
from robustmd.report.figures.losses import RANGE, first_minus_last, gap, of_two_domains
from robustmd.report.figures.weights import effective
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import UNSET, Settings, describe, differing
from robustmd.report.style import Style, line_styles, ordered_styles

LAM = "method.lam"
ACROSS: Style = {"color": "black", "linestyle": ":", "linewidth": 1.2, "marker": ""}  # the baseline
MOST_SWEEPS = 4
Sweep = Sequence[Group]  # the same in all but λ, by λ


def sweeps(section: Section) -> dict[str, Sweep]:
    """Groups that differ in λ alone, where there are at least two values of it, in the table's
    order: by method, and by what else is not the same in all sweeps of that method."""
    alike: dict[Settings, list[Group]] = defaultdict(list)
    for group in section.mixtures:
        if _lam(group):
            alike[group.settings.without(LAM)].append(group)
    several = {settings: groups for settings, groups in alike.items() if len(groups) > 1}
    found: dict[str, Sweep] = {}
    for settings, groups in several.items():
        method = groups[0].method
        keys = differing(one for one, sweep in several.items() if sweep[0].method == method)
        name = clean(f"{method} {describe(settings, keys)}".strip())
        found[name] = sorted(groups, key=_lam)
    return found


def _lam(group: Group) -> float:
    """λ, where it is a number that a log axis can show; else 0."""
    lam = group.settings.get(LAM, UNSET)
    return lam if isinstance(lam, float) and 0 < lam < math.inf else 0.0


def draw_curves(data: FigureData) -> Drawing | None:
    """Discrepancy and drift over the iterations: one line for each λ, one row for each method."""
    section = data.section
    found = dict([*sweeps(section).items()][:MOST_SWEEPS])
    if not found or len(section.domains) < 2:
        return None
    values = sorted({_lam(group) for sweep in found.values() for group in sweep})
    looks = dict(zip(values, ordered_styles(len(values)), strict=True))
    panels = []
    for name, sweep in found.items():
        labels = [f"λ = {_lam(group):g}" for group in sweep]
        styles = [looks[_lam(group)] for group in sweep]
        for what, (ylabel, of) in _curves(data).items():
            lines = data.lines(sweep, of, names=labels, styles=styles)
            panels.append(Panel(f"{name}: {what}", ylabel, lines, zero=True))
    if not any(panel.lines for panel in panels):
        return None
    left, right = _curves(data)
    return data.drawing(
        "lambda_curves",
        "Influence of λ over the iterations",
        f"{left.capitalize()} of the training losses (left) and {right} (right) for several λ, "
        "one row for each method.",
        panels,
        columns=2,
    )


def _curves(data: FigureData) -> dict[str, tuple[str, Values]]:
    """{what: (label of the axis, values)}, left and right: the paper's first − last of two domains,
    or of many what all of them do."""
    section = data.section
    if is_many(section.domains):
        return {
            "discrepancy": (RANGE + data.unit, gap(data)),
            "effective number of domains": ("exp(H(p))", lambda run: effective(data, run)),
        }
    f, p = of_two_domains("f", section, data.unit), of_two_domains("p", section)
    return {
        "discrepancy": (f, lambda run: first_minus_last(data.losses(run))),
        "drift of the weights": (p, lambda run: first_minus_last(data.weights(run))),
    }


def draw_worst(data: FigureData) -> Drawing | None:
    """Worst training loss and worst test accuracy against λ; the baseline's as a line across."""
    section = data.section
    found = sweeps(section)
    if not found:
        return None
    across = [g for g in section.groups if is_baseline(g, section.baseline)][:1]
    looks = line_styles([sweep[0] for sweep in found.values()])
    every = [_lam(group) for sweep in found.values() for group in sweep]

    def panel(title: str, ylabel: str, quantity: Quantity) -> Panel:
        lines = [
            _over(data, quantity, name, {_lam(group): group for group in sweep}, look)
            for (name, sweep), look in zip(found.items(), looks, strict=True)
        ]
        for group in across:
            ends = {min(every): group, max(every): group}
            lines.append(_over(data, quantity, group.label, ends, ACROSS))
        return Panel(title, ylabel, with_counts(lines), xlabel="λ", log_x=True)

    tested = WORST_TEST_ACCURACY.measured_by(section.loss)
    what, unit = f"worst test {tested.kind}", tested.metric.unit
    panels = [
        panel("worst domain, training", f"worst-case training loss{data.unit}", WORST_TRAIN_LOSS),
        panel("worst domain, test", f"{what} [{unit}]" if unit else what, tested),
    ]
    said = []
    for line in panels[1].lines[: len(found)]:
        points = ", ".join(
            f"{lam:g}: {mean:.2f} {unit}".strip() for lam, mean in line.band["mean"].items()
        )
        said.append(f"{line.label}: {points}")
    return data.drawing(
        "lambda_worst",
        "Influence of λ on the worst domain",
        f"Worst-case training loss and {what}, as in the table, against λ (log axis; "
        "small λ follows the worst domain, large λ stays near the prior)."
        f"{f' Dotted: {across[0].label}.' if across else ''}",
        panels,
        alt=f"{what.capitalize()} by λ: {'; '.join(said)}",
    )


def _over(
    data: FigureData, quantity: Quantity, label: str, by_lam: dict[float, Group], style: Style
) -> Line:
    """The quantity's means and spreads over seeds, against λ."""
    found = {lam: group.estimate(quantity) for lam, group in by_lam.items()}
    frame = pd.DataFrame({"mean": {lam: one.mean for lam, one in found.items()}})
    half = pd.Series({lam: one.spread(data.kind) or 0.0 for lam, one in found.items()})
    frame = frame.assign(low=frame["mean"] - half, high=frame["mean"] + half, least=frame["mean"])
    return Line(label, frame, max(one.n for one in found.values()), style)
