"""The figures of a report: `draw_all` draws every one that the runs of a data set allow.

drawing     a figure, its axes and legend, and how it is saved
lines       panels of lines with bands, and what the runs recorded for them
the others  one file for each family; a function draws a figure, or gives None

Nothing here is loaded by `robustmd report --help`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from robustmd.report.figures import bars, losses, planes, weights
from robustmd.report.figures.drawing import Drawing, image_bytes
from robustmd.report.figures.lines import FigureData

if TYPE_CHECKING:
    from robustmd.report.content import SectionReport

__all__ = ["Drawing", "FigureData", "draw_all", "image_bytes"]

FIGURES: tuple[Callable[[FigureData], Drawing | None], ...] = (  # in the order of a report
    losses.worst_case,
    losses.worst_case_together,
    losses.unseen_accuracy,
    bars.paired_differences,
    planes.static_front,
    planes.every_domain,
    losses.discrepancy,
    losses.best_and_worst,
    losses.over_domains,
    weights.draw,
    weights.effective_domains,
    weights.drift,
    weights.lambda_worst,
    weights.lambda_curves,
    bars.regret,
    bars.running_time,
)


def draw_all(one: "SectionReport") -> Iterator[Drawing]:
    """Draws each figure when it is asked for.

    Raises nothing for what runs lack: a figure that they do not allow is not there.
    """
    for draw in FIGURES:
        made = draw(one.recorded)
        if made is not None:
            yield made
