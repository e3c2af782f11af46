"""Worst-case training loss against the iteration: the paper's Fig. 2, apart and on one axis."""

from collections.abc import Sequence

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, group_lines, left_out_words, seeds_words
from robustmd.report.figures.lines import Line, Panel, line_figure
from robustmd.report.figures.quantities import worst_loss
from robustmd.report.figures.traces import Trace
from robustmd.report.style import line_styles

NAME = "worst_case_training_loss"
TOGETHER = f"{NAME}_together"
YLABEL = "worst-case training loss [nats]"
WHAT = "Largest training loss over the domains, max_k f_k(W_t), at every measured iteration."
PART = " Measurements before the last may take a fixed random part of the training set."


def draw(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """Individual methods and mixtures in panels of their own, as in the paper, each with its own
    log axis: an individual model's worst loss may be a hundred times a mixture's."""
    panels = []
    for title, groups in (
        ("individual models", section.individuals),
        ("mixtures", section.mixtures),
    ):
        lines = group_lines(chosen(groups), traces, worst_loss, kind)
        if lines:
            panels.append(Panel(title, YLABEL, lines, log=True))
    if not panels:
        return None
    every = [line for panel in panels for line in panel.lines]
    return Drawn(
        NAME,
        "Worst-case training loss",
        f"{WHAT} Individual models and mixtures apart, each on a log axis of its own. "
        f"{seeds_words(every, kind)}{PART}{left_out_words(len(every), len(section.groups))}",
        f"Lines of the worst-case training loss over iterations; at the end: {endings(every)}",
        line_figure(section.data, panels),
    )


def draw_together(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """All methods in one panel on a log axis; None where there is nothing to bring together."""
    if not section.individuals or not section.mixtures:
        return None
    groups = chosen(section.groups)
    individuals = [group for group in groups if group.domain is not None]
    mixtures = [group for group in groups if group.domain is None]
    styles = [
        *(style | {"alpha": 0.6, "linewidth": 1.0} for style in line_styles(individuals)),
        *line_styles(mixtures),
    ]
    lines = group_lines([*individuals, *mixtures], traces, worst_loss, kind, styles)
    if not lines:
        return None
    return Drawn(
        TOGETHER,
        "Worst-case training loss, all methods",
        f"{WHAT} All methods on one log axis; individual models thin. "
        f"{seeds_words(lines, kind)}{PART}{left_out_words(len(lines), len(section.groups))}",
        f"Lines of the worst-case training loss over iterations; at the end: {endings(lines)}",
        line_figure(section.data, [Panel("all methods", YLABEL, lines, log=True)]),
    )


def endings(lines: Sequence[Line]) -> str:
    """ "even 0.573, opt 0.329": the last mean of each line, for those who cannot see it."""
    return ", ".join(f"{line.label} {line.band.mean[-1]:.3g}" for line in lines)
