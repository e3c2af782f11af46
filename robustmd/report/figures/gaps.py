"""How far the domains lie apart: in their losses (discrepancy) and in their weights (drift)."""

from collections.abc import Sequence

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures.drawn import Drawn
from robustmd.report.figures.groups import chosen, group_lines, left_out_words, seeds_words
from robustmd.report.figures.lines import Panel, line_figure
from robustmd.report.figures.quantities import discrepancy, drift, loss_range, middle_range
from robustmd.report.figures.traces import Trace
from robustmd.report.figures.worst_case import PART, endings
from robustmd.report.names import is_many

MIDDLE = "difference of losses [nats]"
RANGE = "largest − smallest loss [nats]"


def first_minus_last(letter: str, section: Section, unit: str = "") -> str:
    """ "f(mnist) − f(svhn) [nats]"."""
    first, last = (name if len(name) <= 12 else f"{name[:11]}…" for name in _ends(section))
    return f"{letter}({first}) − {letter}({last}){unit}"


def draw_discrepancy(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """The paper's f_a − f_b beside the gap between the worst and the best domain on a log axis,
    where late differences can be told apart; two of many domains say little: see `_of_many`."""
    if is_many(section.domains):
        return _of_many(section, traces, kind)
    groups = chosen(section.mixtures)
    signed = group_lines(groups, traces, discrepancy, kind)
    sizes = group_lines(groups, traces, loss_range, kind)
    if not signed or len(section.domains) < 2:
        return None
    first, last = _ends(section)
    ylabel = first_minus_last("f", section, " [nats]")
    panels = [
        Panel("signed, first − last domain", ylabel, signed, zero=True),
        Panel("largest − smallest, within each run", RANGE, sizes, log=True),
    ]
    return Drawn(
        "discrepancy",
        "Discrepancy of the training losses",
        f"Left: f_a(W_t) − f_b(W_t) with a = {first}, the first, and b = {last}, the last domain "
        "of the data set. Right: the largest minus the smallest training loss over the domains, "
        f"within each run, on a log axis. {seeds_words(signed, kind)}{PART}"
        f"{left_out_words(len(signed), len(section.mixtures))}",
        f"Gap between the domains' training losses over iterations; at the end: {endings(signed)}",
        line_figure(section.data, panels),
    )


def _of_many(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """What most domains lie apart, beside the gap between the worst and the best."""
    groups = chosen(section.mixtures)
    most = group_lines(groups, traces, middle_range, kind)
    sizes = group_lines(groups, traces, loss_range, kind)
    if not most:
        return None
    panels = [
        Panel("90 % − 10 % quantile, within each run", MIDDLE, most, log=True),
        Panel("largest − smallest, within each run", RANGE, sizes, log=True),
    ]
    return Drawn(
        "discrepancy",
        "Discrepancy of the training losses",
        f"How far the training losses of the {len(section.domains):,} domains lie apart within "
        "each run. Left: their 90 % minus their 10 % quantile; right: the largest minus the "
        f"smallest; log axes. {seeds_words(most, kind)}{PART}"
        f"{left_out_words(len(most), len(section.mixtures))}",
        f"Gap between the quantiles of the domains' losses over iterations; at the end: "
        f"{endings(most)}",
        line_figure(section.data, panels),
    )


def draw_drift(section: Section, traces: Sequence[Trace], kind: SpreadKind) -> Drawn | None:
    """The paper's p_a − p_b of the weights that each iteration used; not of many domains."""
    if is_many(section.domains):
        return None
    lines = group_lines(chosen(section.mixtures), traces, drift, kind)
    moving = any(line.band.mean.std() > 0 for line in lines)
    if not moving or len(section.domains) < 2:
        return None
    first, last = _ends(section)
    ylabel = first_minus_last("p", section)
    return Drawn(
        "drift",
        "Drift of the weights",
        f"p_a − p_b of the weights used in iteration t, with a = {first}, the first, and "
        f"b = {last}, the last domain of the data set: −1 or 1 is all weight on one of them, 0 the "
        "same weight. "
        f"{seeds_words(lines, kind)}{left_out_words(len(lines), len(section.mixtures))}",
        f"Difference of two domains' weights over iterations; at the end: {endings(lines)}",
        line_figure(section.data, [Panel("weights", ylabel, lines, zero=True)]),
    )


def _ends(section: Section) -> tuple[str, str]:
    return section.domains[0], section.domains[-1]
