"""Every figure that the runs of one data set allow, in the order of a report."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from robustmd import fonts
from robustmd.report.figures import (
    best_and_worst,
    domain_losses,
    domains,
    exemplars,
    gaps,
    lam,
    paired,
    regret,
    running_time,
    sorted_weights,
    static_front,
    unseen,
    weights,
    worst_case,
)
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.traces import read_traces
from robustmd.report.names import clean, is_many
from robustmd.report.style import not_drawable

if TYPE_CHECKING:
    from robustmd.report.content import SectionReport


def draw_all(one: "SectionReport") -> Iterator[Drawn]:
    """Draws each figure when it is asked for; weights.csv of each run is read once.

    Raises nothing for what runs lack: a figure that they do not allow is not there.
    """
    section, kind = one.section, one.table.spread
    labels = [group.label for group in section.groups]
    note = not_drawable(clean("".join([section.data, *section.runs[0].measured, *labels])))
    traces = read_traces(section.runs)
    draw_weights = sorted_weights.draw if is_many(section.domains) else weights.draw_weights
    makers: tuple[Callable[[], Drawn | None], ...] = (
        lambda: worst_case.draw(section, traces, kind),
        lambda: worst_case.draw_together(section, traces, kind),
        lambda: unseen.draw(section, traces, kind),
        lambda: paired.draw(section.data, one.comparisons),
        lambda: static_front.draw(section.data, one.front, kind),
        lambda: domains.draw(section),
        lambda: gaps.draw_discrepancy(section, traces, kind),
        lambda: best_and_worst.draw(section, traces, kind),
        lambda: domain_losses.draw(section, traces),
        lambda: draw_weights(section, traces, kind),
        lambda: weights.draw_effective(section, traces, kind),
        lambda: gaps.draw_drift(section, traces, kind),
        lambda: lam.draw_worst(section, kind),
        lambda: lam.draw_curves(section, traces, kind),
        lambda: regret.draw(section.data, one.regrets, kind),
        lambda: running_time.draw(section),
        lambda: exemplars.draw(section),
    )
    for make in makers:
        drawn = make()
        if drawn is not None:
            yield replace(drawn, caption=f"{drawn.caption} {fonts.NOTE}") if note else drawn
