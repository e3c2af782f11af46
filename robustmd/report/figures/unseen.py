"""Test accuracy over the iterations, of the domains that train and of those kept out, apart."""

from collections.abc import Mapping, Sequence

import numpy as np

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, group_lines, left_out_words, seeds_words
from robustmd.report.figures.lines import Panel, line_figure
from robustmd.report.figures.traces import Trace
from robustmd.report.figures.worst_case import endings
from robustmd.report.names import some_text
from robustmd.report.quantities import UNSEEN
from robustmd.runs.series import Series

YLABEL = "test accuracy [%]"


def draw(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """Two panels with one axis; None where no domain is unseen."""
    if not section.unseen:
        return None
    groups = chosen(section.groups)
    trained = group_lines(groups, traces, lambda trace: _worst(trace.run.history), kind)
    unseen = group_lines(groups, traces, lambda trace: _worst(trace.run.unseen_history), kind)
    if not trained or not unseen:
        return None
    which = f"{'worst of ' if len(section.unseen) > 1 else ''}{some_text(section.unseen)}"
    panels = [
        Panel("worst trained domain", YLABEL, trained),
        Panel(f"{which} {UNSEEN}", YLABEL, unseen),
    ]
    return Drawn(
        "unseen_test_accuracy",
        "Test accuracy, trained and unseen",
        "Test accuracy at every measured iteration. Left: the lowest over the domains that train, "
        f"within each run. Right: {which} {UNSEEN}, kept out of training. "
        f"{seeds_words(trained, kind)}{left_out_words(len(trained), len(section.groups))}",
        f"Worst trained test accuracy at the end: {endings(trained)}; unseen: {endings(unseen)}",
        line_figure(section.data, panels, share_y=True),
    )


def _worst(history: Mapping[str, Series]) -> tuple[np.ndarray, np.ndarray]:
    series = history.get("test")
    if series is None:
        return np.empty(0, int), np.empty(0)
    return series.iterations, series.worst_accuracy
