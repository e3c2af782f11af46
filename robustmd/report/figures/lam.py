"""The influence of λ: the paper's discrepancy and drift for several λ, and what λ does to the worst
domain."""

import math
from collections import defaultdict
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robustmd.report.aggregate import Group, Section, is_baseline
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.bands import KINDS, Values
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.gaps import RANGE, first_minus_last
from robustmd.report.figures.groups import group_lines, seeds_words
from robustmd.report.figures.lines import Line, Panel, add_legend, line_figure
from robustmd.report.figures.quantities import (
    discrepancy,
    drift,
    effective_domains,
    loss_range,
)
from robustmd.report.figures.traces import Trace
from robustmd.report.names import is_many
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import UNSET, frozen
from robustmd.report.style import (
    Style,
    figure_style,
    figure_text,
    line_styles,
    ordered_styles,
    place_style,
)

LAM = "method.lam"
REGULARIZERS = {"opt": "L2", "ot": "OT", "kl": "KL"}
EFFECTIVE = "exp(H(p))"
Sweep = tuple[Group, ...]  # the same in all but λ, by λ


def sweeps(section: Section) -> list[Sweep]:
    """Groups that differ in λ alone, where there are at least two values of it; in the table's
    order."""
    alike: dict[object, list[Group]] = defaultdict(list)
    for group in section.mixtures:
        if _lam(group) is not None:
            rest = {key: value for key, value in group.settings.items() if key != LAM}
            alike[frozen(rest)].append(group)
    found = [sorted(groups, key=lambda g: _lam(g) or 0.0) for groups in alike.values()]
    return [tuple(groups) for groups in found if len(groups) > 1]


def _lam(group: Group) -> float | None:
    """λ, where it is a number that a log axis can show."""
    lam = group.settings.get(LAM, UNSET)
    return lam if isinstance(lam, float) and 0 < lam < math.inf else None


def names(found: Sequence[Sweep]) -> list[str]:
    """ "opt (L2)"; with a number where one method was swept in several ways."""
    plain = [f"{s[0].method} ({REGULARIZERS.get(s[0].method, 'λ')})" for s in found]
    return [
        name if plain.count(name) == 1 else f"{name}, sweep {plain[: i + 1].count(name)}"
        for i, name in enumerate(plain)
    ]


def draw_curves(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """Discrepancy and drift over the iterations, a line a λ, a row a regularizer."""
    found = sweeps(section)[:4]
    if not found or len(section.domains) < 2:
        return None
    panels: list[Panel] = []
    values = sorted({_lam(group) or 0.0 for sweep in found for group in sweep})
    looks = dict(zip(values, ordered_styles(len(values)), strict=True))
    for name, sweep in zip(names(found), found, strict=True):
        styles = [looks[_lam(group) or 0.0] for group in sweep]
        for what, ylabel, quantity in _curves(section):
            drawn = group_lines(sweep, traces, quantity, kind, styles)
            lines = tuple(Line(_lam_label(line, sweep), line.band, line.style) for line in drawn)
            panels.append(Panel(f"{name}: {what}", ylabel, lines, zero=True))
    every = [line for panel in panels for line in panel.lines]
    if not every:
        return None
    return Drawn(
        "lambda_curves",
        "Influence of λ over time",
        f"{_curves_words(section)} for several λ, a row a regularizer. {seeds_words(every, kind)}",
        f"{' and '.join(what for what, _, _ in _curves(section)).capitalize()} over iterations for "
        "λ of " + ", ".join(f"{value:g}" for value in values),
        line_figure(section.data, panels),
    )


def _curves(section: Section) -> tuple[tuple[str, str, Values], ...]:
    """(what, label of the axis, values), left and right: the paper's first − last of two domains,
    or of many what all of them do."""
    if is_many(section.domains):
        return ("discrepancy", RANGE, loss_range), (
            "effective domains",
            EFFECTIVE,
            effective_domains,
        )
    return (
        ("discrepancy", first_minus_last("f", section, " [nats]"), discrepancy),
        ("drift", first_minus_last("p", section), drift),
    )


def _curves_words(section: Section) -> str:
    right = "effective number of domains" if is_many(section.domains) else "drift of the weights"
    return f"Discrepancy of the training losses (left) and {right} (right)"


def _lam_label(line: Line, sweep: Sweep) -> str:
    """ "λ = 0.1", with n where the line's name has it."""
    group = max(
        (group for group in sweep if line.label.startswith(group.label)),
        key=lambda group: len(group.label),
    )
    return f"λ = {_lam(group):g}{line.label.removeprefix(group.label)}"


def draw_worst(section: Section, kind: SpreadKind) -> Drawn | None:
    """Worst training loss and worst test accuracy against λ; the baseline's as a line across."""
    found = sweeps(section)
    if not found:
        return None
    references = [g for g in section.groups if is_baseline(g, section.baseline)][:1]
    labels = names(found)
    with figure_style():
        figure = Figure(figsize=(8.4, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        looks = [
            style | {"linestyle": place_style(place)["linestyle"]}
            for place, style in enumerate(line_styles([sweep[0] for sweep in found]))
        ]
        for axis, quantity, ylabel in (
            (left, WORST_TRAIN_LOSS, "worst-case training loss [nats]"),
            (right, WORST_TEST_ACCURACY, "worst test accuracy [%]"),
        ):
            for sweep, style in zip(found, looks, strict=True):
                _sweep(axis, sweep, quantity, style, kind)
            for group in references:
                _level(axis, group, quantity, kind)
            axis.set_xscale("log")
            axis.set_xlabel("λ")
            axis.set_ylabel(ylabel)
        figure.suptitle(figure_text(section.data), fontsize=10)
        entries = [*zip(labels, looks, strict=True)]
        entries += [(group.label, {"color": "black", "linestyle": ":"}) for group in references]
        add_legend(figure, entries, min(4, len(entries)))
    counts = sorted({len(group.runs) for sweep in found for group in sweep})
    seeds = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    bars = f"bars: {KINDS[kind]}" if counts[-1] > 1 else "no bars"
    return Drawn(
        "lambda_worst",
        "Influence of λ on the worst domain",
        "Worst-case training loss and worst test accuracy, as in the table, against λ (log axis; "
        f"small λ follows the worst domain, large λ stays near the prior). n = {seeds} seeds; "
        f"{bars}.{f' Dotted: {references[0].label}.' if references else ''}",
        "Worst test accuracy by λ: "
        + "; ".join(
            f"{name}: "
            + ", ".join(f"{_lam(g):g}: {g.estimate(WORST_TEST_ACCURACY).mean:.2f} %" for g in sweep)
            for name, sweep in zip(labels, found, strict=True)
        ),
        figure,
    )


def _sweep(axis: Axes, sweep: Sweep, quantity: Quantity, style: Style, kind: SpreadKind) -> None:
    estimates = [group.estimate(quantity) for group in sweep]
    bars = [one.spread(kind) or 0.0 for one in estimates]
    means = [one.mean for one in estimates]
    axis.errorbar([_lam(g) or 1.0 for g in sweep], means, yerr=bars, capsize=3, **style)


def _level(axis: Axes, group: Group, quantity: Quantity, kind: SpreadKind) -> None:
    one = group.estimate(quantity)
    axis.axhline(one.mean, color="black", linestyle=":", linewidth=1.2, zorder=1)
    half = one.spread(kind)
    if half:
        axis.axhspan(one.mean - half, one.mean + half, color="black", alpha=0.08, linewidth=0)
