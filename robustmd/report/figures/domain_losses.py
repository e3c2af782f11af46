"""Training losses of many domains over the iterations: median, middle and worst in place of a line
each."""

from collections.abc import Sequence

import numpy as np

from robustmd.report.aggregate import Group, Section
from robustmd.report.figures.bands import Band, band
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, left_out_words
from robustmd.report.figures.lines import Line, Panel, line_figure
from robustmd.report.figures.quantities import loss_quantiles
from robustmd.report.figures.traces import Trace
from robustmd.report.figures.worst_case import PART
from robustmd.report.names import is_many
from robustmd.report.style import place_style

MOST_PANELS = 12
SHARES = (0.1, 0.5, 0.9, 1.0)
YLABEL = "training loss [nats]"


def draw(section: Section, traces: Sequence[Trace]) -> Drawn | None:
    """A panel a method; None where there are few domains."""
    groups = chosen(section.mixtures, MOST_PANELS)
    panels = [one for group in groups if (one := _panel(group, traces)) is not None]
    if not is_many(section.domains) or not panels:
        return None
    seeds = sorted({len(group.runs) for group in groups})
    n = "–".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    return Drawn(
        "domain_losses",
        "Training losses over the domains",
        f"The {len(section.domains):,} domains' training losses f_k(W_t): the worst, the median, "
        "and from the 10 % to the 90 % quantile over the domains (band). Each is taken within a "
        f"run, then averaged over n = {n} seeds; log axis.{PART}"
        f"{left_out_words(len(panels), len(section.mixtures))}",
        "Worst and median training loss at the end: " + "; ".join(map(_ending, panels)),
        line_figure(section.data, panels, columns=3 if len(panels) > 4 else 2, share_y=True),
    )


def _panel(group: Group, traces: Sequence[Trace]) -> Panel | None:
    paths = {run.path for run in group.runs}
    own = [trace for trace in traces if trace.run.path in paths and len(trace.iterations)]
    if not own:
        return None
    quantiles = [loss_quantiles(trace, SHARES) for trace in own]
    low, median, high, worst = (
        band([(t.iterations, q[i]) for t, q in zip(own, quantiles, strict=True)], "std")
        for i in range(len(SHARES))
    )
    if not len(median):
        return None
    middle = _over_domains(median, low.mean, high.mean, len(group.runs[0].domains))
    lines = (
        Line("worst", _over_domains(worst, worst.mean, worst.mean, 1), place_style(2)),
        Line("median", middle, place_style(1)),
    )
    return Panel(group.label, YLABEL, lines, log=True)


def _over_domains(line: Band, low: np.ndarray, high: np.ndarray, count: int) -> Band:
    """A band over `count` domains in place of seeds: from `low` to `high`."""
    return Band(count, line.iterations, line.mean, low, high, low)


def _ending(panel: Panel) -> str:
    worst, median = (line.band.mean[-1] for line in panel.lines)
    return f"{panel.title} {worst:.3g} and {median:.3g}"
