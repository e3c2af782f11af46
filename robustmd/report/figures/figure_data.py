"""From the runs of a table's rows to lines: mean over seeds, band, name, and the words for them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD_WORDS, SpreadKind, t_quantile
from robustmd.report.figures.curves import Curve, Trace, is_moving
from robustmd.report.figures.drawing import Drawing, left_out_words
from robustmd.report.figures.panels import Band, Line, Panel, line_figure
from robustmd.report.style import Style, line_styles

if TYPE_CHECKING:
    from robustmd.report.content import SectionReport


@dataclass(frozen=True)
class FigureData:
    """What the figures of a section are made of: its numbers, and what each of its runs recorded
    over its iterations, by the run's path."""

    report: "SectionReport"
    traces: dict[Path, Trace]

    @property
    def section(self) -> Section:
        return self.report.section

    @property
    def kind(self) -> SpreadKind:
        """What bands and bars are."""
        return self.report.table.spread

    @property
    def moving(self) -> list[Group]:
        """The mixtures whose weights change in a run."""
        return [g for g in self.section.mixtures if any(map(is_moving, self.of(g)))]

    def of(self, group: Group) -> list[Trace]:
        """One for each seed."""
        return [self.traces[run.path] for run in group.runs]

    def band(self, group: Group, values: Callable[[Trace], Curve]) -> Band:
        """Of the group's runs; those without any value (no weights recorded) do not count."""
        curves = [values(trace) for trace in self.of(group)]
        return band([curve for curve in curves if len(curve[0])], self.kind)

    def lines(
        self,
        groups: Sequence[Group],
        values: Callable[[Trace], Curve],
        *,
        names: Sequence[str] | None = None,
        styles: Sequence[Style] | None = None,
    ) -> tuple[Line, ...]:
        """A line for each group that has any value; "(n = 2)" in the names where not all n are the
        same. `names` and `styles` are the groups' own where they are not given."""
        labels = names or [group.label for group in groups]
        looks = styles or line_styles(groups)
        found = [
            Line(label, self.band(group, values), style)
            for group, label, style in zip(groups, labels, looks, strict=True)
        ]
        return with_counts([line for line in found if len(line.band)])

    def drawing(
        self,
        name: str,
        title: str,
        what: str,
        panels: Sequence[Panel],
        there: Sequence[object] = (),
        *,
        shown: Sequence[object] = (),
        bands: str = "",
        more: str = "",
        alt: str = "",
        **layout: Any,
    ) -> Drawing:
        """Panels of lines, with a caption and what to know without seeing them.

        Args:
            what: the caption's beginning, before what line and band are and `more`.
            there: the rows of the table that could be shown; `shown`: those that are, where not
                each of them is a line.
            bands: what line and band are, where they are not of seeds.
            alt: in place of the lines' last values.
            layout: see `line_figure`.
        """
        lines = [line for panel in panels for line in panel.lines]
        count = len(shown) or len({line.label for line in lines})
        missing = left_out_words(self.section, count, len(there)) if there else ""
        ends = "; ".join(f"{panel.title}: {endings(panel.lines)}" for panel in panels)
        return Drawing(
            name,
            title,
            f"{what} {bands or self.band_words(lines)}{more}{missing}",
            alt or f"{title} over the iterations; at the end: {ends}",
            line_figure(self.section.data, panels, **layout),
        )

    def band_words(self, lines: Sequence[Line]) -> str:
        """ "Line: mean over n = 3 seeds; band: ± one standard error…": what line and band are."""
        counts = sorted({line.band.n for line in lines})
        if counts == [1]:
            return "n = 1 seed: no band."
        said = f"± {SPREAD_WORDS[self.kind]}"
        if len(counts) == 1:
            return f"Line: mean over n = {counts[0]} seeds; band: {said}."
        alone = " (none where n = 1)" if counts[:1] == [1] else ""
        return f"Line: mean over n seeds, n as named; band: {said}{alone}."


def with_counts(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines, with "(n = 2)" in their names where not all n are the same."""
    if len({line.band.n for line in lines}) < 2:
        return tuple(lines)
    return tuple(replace(line, label=f"{line.label} (n = {line.band.n})") for line in lines)


def band(curves: Sequence[Curve], kind: SpreadKind) -> Band:
    """Of n curves, one for each seed, at those iterations that all of them have."""
    curves = curves or [(np.empty(0, int), np.empty(0))]
    common = reduce(np.intersect1d, (times for times, _ in curves))
    values = np.stack([of[np.isin(times, common)] for times, of in curves])
    mean, half = values.mean(axis=0), half_width(values, kind)
    return Band(len(curves), common, mean, mean - half, mean + half, values.min(axis=0))


def half_width(values: np.ndarray, kind: SpreadKind) -> np.ndarray:
    """[M] of values [n, M]: s (std), s/√n (sem), t_{0.975, n−1} s/√n (ci95); 0 where n = 1."""
    n = len(values)
    if n < 2:
        return np.zeros(values.shape[1])
    factor = {"std": math.sqrt(n), "sem": 1.0, "ci95": t_quantile(n - 1)}[kind]
    return factor * values.std(axis=0, ddof=1) / math.sqrt(n)


def endings(lines: Sequence[Line]) -> str:
    """ "even 0.573, opt 0.329": the last mean of each line, for those who cannot see it."""
    return ", ".join(f"{line.label} {line.band.mean[-1]:.3g}" for line in lines)
