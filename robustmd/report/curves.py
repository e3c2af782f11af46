"""Worst-case training loss against the iteration: the paper's Fig. 2, one line a method."""

import io
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from robustmd.report.aggregate import Group, Section
from robustmd.report.style import figure_style, figure_text, line_styles
from robustmd.runs.run import Run

NAME = "worst_case_training_loss"
BAND = "line: mean over seeds; band: smallest to largest"
# The same runs give the same bytes: no dates, no versions.
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}}


@dataclass(frozen=True)
class Curve:
    """f_w(t) = max_k f_k(W_t) on the training set [nats], over a group's seeds.

    `iterations`, `mean`, `low`, `high`: arrays of one length, ascending in iterations, at those
    iterations where every run of the group has measured every domain.
    """

    label: str
    n: int
    iterations: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def worst_case_curve(run: Run) -> dict[int, float]:
    """{t: max_k f_k(W_t)} on the training set [nats]; a measurement that has not exactly one finite
    loss for each domain has no worst case and is left out."""
    losses: dict[int, list[float]] = defaultdict(list)
    domains: dict[int, set[str]] = defaultdict(set)
    for row in run.measurements():
        if row.split == "train":
            losses[row.iteration].append(row.loss)
            domains[row.iteration].add(row.domain)
    return {
        t: max(values)
        for t, values in losses.items()
        if len(values) == len(domains[t]) == len(run.domains) and all(map(math.isfinite, values))
    }


def group_curve(group: Group) -> Curve:
    """The group's curve: mean, smallest and largest over its runs."""
    curves = [worst_case_curve(run) for run in group.runs]
    common = sorted(set.intersection(*(set(curve) for curve in curves)))
    values = np.array([[curve[t] for t in common] for curve in curves]).reshape(len(curves), -1)
    return Curve(
        label=group.label,
        n=len(curves),
        iterations=np.array(common, int),
        mean=values.mean(axis=0),
        low=values.min(axis=0),
        high=values.max(axis=0),
    )


def draw(section: Section) -> Figure:
    """Individual methods and mixtures in panels of their own, as in the paper, each with its own
    log axis: an individual model's worst loss may be a hundred times a mixture's."""
    panels = [("individual methods", section.individuals), ("mixtures", section.mixtures)]
    panels = [(title, groups) for title, groups in panels if groups]
    with figure_style():
        longest = max(len(groups) for _, groups in panels)
        figure = Figure(figsize=(4.2 * len(panels), 3.2 + 0.17 * longest), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, groups) in zip(axes, panels, strict=True):
            _panel(axis, title, groups)
            _label_losses(axis)
        axes[0].set_ylabel("worst-case training loss [nats]")
        figure.suptitle(figure_text(section.data), fontsize=10)
    return figure


def _panel(axis: Axes, title: str, groups: Sequence[Group]) -> None:
    handles, names = [], []
    for group, style in zip(groups, line_styles(groups), strict=True):
        curve = group_curve(group)
        marker = "o" if len(curve.iterations) == 1 else None
        (line,) = axis.plot(curve.iterations, curve.mean, linewidth=1.5, marker=marker, **style)
        if curve.n > 1:
            band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
            axis.fill_between(curve.iterations, curve.low, curve.high, **band)
        handles.append(line)
        names.append(figure_text(f"{curve.label} (n = {curve.n})"))
    axis.set_yscale("log")
    axis.set_title(title)
    axis.set_xlabel("iteration")
    axis.legend(
        handles,
        names,
        title=BAND if any(group.runs[1:] for group in groups) else None,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        handlelength=3.2,
        ncols=1 if max(map(len, names)) > 24 or len(names) < 5 else 2,
    )


def _label_losses(axis: Axes) -> None:
    """Labels such as 0.2, not 2 × 10⁻¹; those at 2 and 5 only where there are few decades."""
    low, high = axis.get_ylim()
    steps = (1, 2, 5) if high / low < 1e3 else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(NullFormatter())


def image_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a "png" or "pdf" file."""
    out = io.BytesIO()
    with figure_style():
        figure.savefig(out, format=kind, metadata=METADATA[kind])
    return out.getvalue()
