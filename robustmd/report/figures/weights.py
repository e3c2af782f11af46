"""The adversary's weights over the iterations, how many domains they amount to, and the influence
of λ: the paper's discrepancy and drift for several λ, and what λ does to the worst domain."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import entropy

from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.figures.drawing import Drawing, chosen
from robustmd.report.figures.lines import FigureData, Line, Panel, Values, with_counts
from robustmd.report.figures.losses import RANGE, apart, first_minus_last, of_two_domains
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import UNSET, Settings, describe, differing
from robustmd.report.style import Style, line_styles, ordered_styles, place_style
from robustmd.runs.run import Run

RANK = "domain, by its weight"
LAM = "method.lam"
ACROSS: Style = {"color": "black", "linestyle": ":", "linewidth": 1.2, "marker": ""}  # the baseline
MOST_SWEEPS = 4
Sweep = Sequence[Group]  # the same in all but λ, by λ


def draw(data: FigureData) -> Drawing | None:
    """One panel for each method whose weights move, one line for each domain; of many domains
    see `_sorted`."""
    if not data.moving:
        return None
    return _sorted(data) if is_many(data.section.domains) else _by_domain(data)


def _by_domain(data: FigureData) -> Drawing:
    def weight_of(name: str) -> Values:
        return lambda run: data.weights(run)[name]

    groups = chosen(data.section, data.moving)
    counts = {len(group.runs) for group in groups}
    panels = []
    for group in groups:
        title = f"{group.label} (n = {len(group.runs)})" if len(counts) > 1 else group.label
        found = (
            data.line(group, weight_of(name), name, place_style(place))
            for place, name in enumerate(data.section.domains)
        )
        panels.append(Panel(title, "weight p", [line for line in found if line is not None]))
    return data.drawing(
        "weights",
        "Weights of the domains",
        "Weight p_k that iteration t gave to each domain, of the methods that move it.",
        panels,
        data.moving,
        shown=len(groups),
        share_y=True,
    )


def _sorted(data: FigureData) -> Drawing:
    """From the largest weight to the smallest: which shares are played, not by whom. One line for
    each method: K·p_k by rank, and what the r largest hold together."""
    section, count = data.section, len(data.section.domains)
    sizes = data.lines(section.mixtures, lambda run: count * _by_rank(data.weights(run)))
    sums = data.lines(section.mixtures, lambda run: _by_rank(data.weights(run)).cumsum())
    half = (f"{one.label} {int((one.band['mean'] < 0.5 - 1e-9).sum()) + 1:,}" for one in sums)
    return data.drawing(
        "weights",
        "Weights of the domains, sorted",
        f"The last recorded weights of the {count:,} domains, sorted within each run. Left: K·p_k, "
        "1 for the same weight on all; right: what the r domains with the largest weights hold "
        "together.",
        [
            Panel("weights, largest first", "K·p (same for all: 1)", sizes, xlabel=RANK),
            Panel("together", "weight of the first r domains", sums, xlabel=RANK),
        ],
        section.mixtures,
        alt=f"Of {count:,} domains half of the weight is on: {', '.join(half)}",
    )


def _by_rank(weights: pd.DataFrame) -> pd.Series:
    """The last weights, from rank 1, the largest; empty where there are none."""
    last = np.sort(weights.to_numpy()[-1:].ravel())[::-1]
    return pd.Series(last, index=range(1, len(last) + 1))


def effective_domains(data: FigureData) -> Drawing | None:
    """exp(H(p_t)) of every mixture that recorded weights: K for even weights, 1 for all on one."""
    section, many = data.section, len(data.section.domains)
    if many < 2 or not data.moving:
        return None
    lines = data.lines(section.mixtures, lambda run: effective(data, run))
    return data.drawing(
        "effective_domains",
        "Effective number of domains",
        f"exp(H(p_t)), the exponential of the weights' entropy: {many} for the same weight on all "
        f"{many} domains, 1 for all weight on one.",
        [Panel("weights", "effective number of domains, exp(H(p))", lines)],
        section.mixtures,
    )


def effective(data: FigureData, run: Run) -> pd.Series:
    """exp(H(p_t)), H(p) = −Σ_k p_k log p_k, at each recorded iteration."""
    weights = data.weights(run)
    return pd.Series(np.exp(entropy(weights.clip(lower=0.0), axis=1)), weights.index)


def drift(data: FigureData) -> Drawing | None:
    """The paper's p_a − p_b of the weights that each iteration used; not of many domains."""
    section = data.section
    lines = data.lines(section.mixtures, lambda run: first_minus_last(data.weights(run)))
    moving = any(np.ptp(line.band["mean"]) > 0 for line in lines)
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


def lambda_curves(data: FigureData) -> Drawing | None:
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
            "discrepancy": (RANGE + data.unit, apart(data)),
            "effective number of domains": ("exp(H(p))", lambda run: effective(data, run)),
        }
    f, p = of_two_domains("f", section, data.unit), of_two_domains("p", section)
    return {
        "discrepancy": (f, lambda run: first_minus_last(data.losses(run))),
        "drift of the weights": (p, lambda run: first_minus_last(data.weights(run))),
    }


def lambda_worst(data: FigureData) -> Drawing | None:
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
