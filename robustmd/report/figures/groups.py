"""From groups of runs to lines: which are drawn, how they are called, what the band is."""

from collections.abc import Iterable, Sequence

from robustmd.report.aggregate import Group
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.bands import KINDS, Band, Values, group_band
from robustmd.report.figures.lines import Line
from robustmd.report.figures.traces import Trace
from robustmd.report.quantities import WORST_TRAIN_LOSS
from robustmd.report.style import Style, line_styles

MOST_LINES = 14  # in one panel; more are a thicket


def chosen(groups: Sequence[Group], most: int = MOST_LINES) -> tuple[Group, ...]:
    """At most `most` groups in their order: even, then those with the lowest worst-case training
    loss."""
    if len(groups) <= most:
        return tuple(groups)
    by_loss = sorted(groups, key=lambda g: (g.method != "even", g.estimate(WORST_TRAIN_LOSS).mean))
    kept = {id(group) for group in by_loss[:most]}
    return tuple(group for group in groups if id(group) in kept)


def left_out_words(shown: int, there: int) -> str:
    """What a caption says where not every row of the table is drawn; "" where all are."""
    if shown == there:
        return ""
    return (
        f" {shown} of {there} rows are drawn: even and those with the lowest worst-case training "
        "loss; the table has all."
    )


def group_lines(
    groups: Sequence[Group],
    traces: Sequence[Trace],
    values: Values,
    kind: SpreadKind,
    styles: Sequence[Style] | None = None,
) -> tuple[Line, ...]:
    """A line a group that has any value; "(n = 2)" in the names where not all n are the same."""
    looks = line_styles(groups) if styles is None else styles
    found = [
        (group, one, style)
        for group, style in zip(groups, looks, strict=True)
        if len(one := group_band(group, traces, values, kind))
    ]
    several = len({one.n for _, one, _ in found}) > 1
    return tuple(
        Line(f"{group.label} (n = {one.n})" if several else group.label, one, style)
        for group, one, style in found
    )


def seeds_words(lines: Iterable[Line], kind: SpreadKind) -> str:
    """ "Line: mean over n = 3 seeds; band: ± one standard error…": what line and band are."""
    return band_words([line.band for line in lines], kind)


def band_words(bands: Sequence[Band], kind: SpreadKind) -> str:
    """The same for bands."""
    counts = sorted({one.n for one in bands})
    if counts == [1]:
        return "n = 1 seed: no band."
    if len(counts) == 1:
        return f"Line: mean over n = {counts[0]} seeds; band: {KINDS[kind]}."
    alone = " (none where n = 1)" if counts[:1] == [1] else ""
    return f"Line: mean over n seeds, n as named; band: {KINDS[kind]}{alone}."
