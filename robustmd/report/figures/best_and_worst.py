"""Best and worst training loss over many domains: the paper's figure of the noise tasks."""

from collections.abc import Sequence

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, group_lines, left_out_words, seeds_words
from robustmd.report.figures.lines import Panel, line_figure
from robustmd.report.figures.quantities import best_loss, worst_loss
from robustmd.report.figures.traces import Trace
from robustmd.report.figures.worst_case import PART, endings

FEWEST_DOMAINS = 3  # with two, both are in the discrepancy


def draw(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """Two panels with one axis: the distance between a method's two lines is what its domains lie
    apart."""
    if len(section.domains) < FEWEST_DOMAINS:
        return None
    groups = chosen(section.mixtures)
    worst = group_lines(groups, traces, worst_loss, kind)
    best = group_lines(groups, traces, best_loss, kind)
    if not worst:
        return None
    panels = [
        Panel("worst domain", "training loss [nats]", worst, log=True),
        Panel("best domain", "training loss [nats]", best, log=True),
    ]
    return Drawn(
        "best_and_worst_training_loss",
        "Best and worst training loss",
        "Largest (left) and smallest (right) training loss over the "
        f"{len(section.domains)} domains, within each run, on one log axis. "
        f"{seeds_words(worst, kind)}{PART}{left_out_words(len(worst), len(section.mixtures))}",
        f"Worst training loss at the end: {endings(worst)}; best: {endings(best)}",
        line_figure(section.data, panels, share_y=True),
    )
