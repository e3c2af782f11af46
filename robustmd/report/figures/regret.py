"""The adversary's measured regret beside its proved bound."""

from collections.abc import Sequence

from matplotlib.lines import Line2D

from robustmd.report.estimate import Estimate, SpreadKind
from robustmd.report.figures.bands import KINDS
from robustmd.report.figures.bars import axes_of, row_figure
from robustmd.report.figures.drawn import Drawn
from robustmd.report.regret import RegretRow
from robustmd.report.style import COLOURS, figure_style

MOST_ROWS = 20


def draw(data: str, rows: Sequence[RegretRow], kind: SpreadKind) -> Drawn | None:
    """A row a method: a dot with its spread for the regret, a bar across for the bound."""
    shown = rows[:MOST_ROWS]
    if not shown:
        return None
    with figure_style():
        figure = row_figure(data, [row.label for row in shown], below=0.3)
        (axis,) = axes_of(figure)
        for place, row in enumerate(shown):
            half = row.measured.spread(kind) or None
            axis.errorbar(row.measured.mean, place, xerr=half, fmt="o", color=COLOURS[1], capsize=3)
            if row.bound is not None:
                axis.plot(
                    row.bound.mean,
                    place,
                    marker="|",
                    markersize=14,
                    markeredgewidth=2.2,
                    color=COLOURS[2],
                )
        axis.axvline(0.0, color="0.4", linewidth=0.8, zorder=1)
        axis.set_xlabel("nats per update")
        axis.margins(x=0.08)
        handles = [
            Line2D([], [], marker="o", linestyle="", color=COLOURS[1], label="measured regret"),
            Line2D(
                [],
                [],
                marker="|",
                linestyle="",
                markersize=10,
                markeredgewidth=2.2,
                color=COLOURS[2],
                label="proved bound",
            ),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    more = f" The first {len(shown)} of {len(rows)} rows." if len(rows) > len(shown) else ""
    counts = sorted({row.measured.n for row in shown})
    seeds = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    bars = f"; bars: {KINDS[kind]}" if counts[-1] > 1 else ""
    return Drawn(
        "regret",
        "Regret of the adversary",
        "How much better the best fixed weights would have done against the run's own mini-batch "
        "losses, in nats per update and with the method's regularizer, and the bound proved for it "
        f"(mean over seeds; no mark where none is proved). n = {seeds} seeds{bars}.{more}",
        "; ".join(f"{row.label}: {_words(row.measured, row.bound)}" for row in shown),
        figure,
    )


def _words(measured: Estimate, bound: Estimate | None) -> str:
    known = "no bound" if bound is None else f"bound {bound.mean:.3g}"
    return f"regret {measured.mean:.3g}, {known}"
