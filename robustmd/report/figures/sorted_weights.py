"""The weights of many domains, from the largest to the smallest: who is played, not which name."""

from collections.abc import Sequence

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, group_lines, left_out_words, seeds_words
from robustmd.report.figures.lines import Line, Panel, line_figure
from robustmd.report.figures.quantities import cumulated_weights, sorted_weights
from robustmd.report.figures.traces import Trace
from robustmd.report.figures.weights import moving

RANK = "domain, by its weight"


def draw(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """A line a method: K·p_k by rank, and what the r largest hold together."""
    if not moving(section, traces):
        return None
    groups, count = chosen(section.mixtures), len(section.domains)
    sizes = group_lines(groups, traces, sorted_weights, kind)
    sums = group_lines(groups, traces, cumulated_weights, kind)
    panels = [
        Panel("weights, largest first", "K·p (even: 1)", sizes, xlabel=RANK),
        Panel("together", "weight of the first r domains", sums, xlabel=RANK, limits=(0, 1.05)),
    ]
    return Drawn(
        "weights",
        "Weights of the domains, sorted",
        f"The last recorded weights of the {count:,} domains, sorted within each run. Left: K·p_k, "
        "1 for the same weight on all; right: what the r domains with the largest weights hold "
        f"together. {seeds_words(sizes, kind)}{left_out_words(len(sizes), len(section.mixtures))}",
        f"Of {count:,} domains half of the weight is on: {_halves(sums)}",
        line_figure(section.data, panels, names_below=True),
    )


def _halves(lines: Sequence[Line]) -> str:
    """ "even 500, opt 120": how many domains hold half of the weight."""
    ranks = ((line, int((line.band.mean < 0.5 - 1e-9).sum()) + 1) for line in lines)
    return ", ".join(f"{line.label} {rank:,}" for line, rank in ranks)
