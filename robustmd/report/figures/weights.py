"""The adversary's weights over the iterations, and how many domains they amount to."""

import numpy as np
import pandas as pd
from scipy.stats import entropy

from robustmd.report.aggregate import Group
from robustmd.report.figures.drawing import Drawing, chosen
from robustmd.report.figures.lines import FigureData, Line, Panel
from robustmd.report.figures.losses import first_minus_last, of_two_domains
from robustmd.report.names import is_many
from robustmd.report.style import place_style
from robustmd.runs.run import Run

RANK = "domain, by its weight"


def draw(data: FigureData) -> Drawing | None:
    """One panel for each method whose weights move, one line for each domain; of many domains
    see `_sorted`."""
    if not data.moving:
        return None
    return _sorted(data) if is_many(data.section.domains) else _by_domain(data)


def _by_domain(data: FigureData) -> Drawing:
    groups = chosen(data.section, data.moving)
    counts = {len(group.runs) for group in groups}
    panels = []
    for group in groups:
        title = f"{group.label} (n = {len(group.runs)})" if len(counts) > 1 else group.label
        found = [_line(data, group, place) for place in range(len(data.section.domains))]
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


def _line(data: FigureData, group: Group, place: int) -> Line | None:
    name = data.section.domains[place]
    return data.line(group, lambda run: data.weights(run)[name], name, place_style(place))


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
