"""Forest plot of the paired differences: the worst domain's gain, the best one's price."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from robustmd.report.figures.bars import axes_of, row_figure
from robustmd.report.figures.drawn import Drawn
from robustmd.report.paired import MEAN, Comparison
from robustmd.report.quantities import WORST_TEST_ACCURACY
from robustmd.report.style import COLOURS, figure_style, figure_text

MOST_ROWS = 20


def draw(data: str, comparisons: Sequence[Comparison]) -> Drawn | None:
    """Left the worst test accuracy, right the price, a row a method; the gray strip is what counts
    as equivalent."""
    gains = [one for one in comparisons if one.quantity == WORST_TEST_ACCURACY][:MOST_ROWS]
    if not gains:
        return None
    prices = {one.method: one for one in comparisons if one.is_price}
    is_mean = any(one.note == MEAN for one in prices.values())
    baseline = gains[0].baseline
    of_what = f"the {MEAN}" if is_mean else f"on the domain that {baseline} does best on"
    with figure_style():
        names = [f"{one.method} (n = {one.difference.n})" for one in gains]
        figure = row_figure(data, names, columns=2)
        left, right = axes_of(figure)
        for place, one in enumerate(gains):
            _row(left, place, one)
            if one.method in prices:
                _row(right, place, prices[one.method])
        for axis, title in (
            (left, "worst test accuracy"),
            (right, f"price: {MEAN if is_mean else f'{baseline}’s best domain'}"),
        ):
            axis.axvspan(-gains[0].margin, gains[0].margin, color="0.92", zorder=0)
            axis.axvline(0.0, color="0.3", linewidth=0.8, zorder=1)
            axis.set_title(figure_text(title))
            axis.set_xlabel(figure_text(f"method − {baseline} [points]"))
            axis.margins(x=0.1)
    return Drawn(
        "paired_differences",
        f"Paired differences to {baseline}",
        f"Method − {baseline} in points of test accuracy, paired by seed: mean (dot) and 95 % t "
        "interval (line; none where n < 2). Left: the worst domain, within each run. Right: the "
        f"price, {of_what}. Gray: within ±{gains[0].margin:g} points, which counts as equivalent.",
        "; ".join(f"{one.method}: {one.mean_text} points, {one.said}" for one in gains),
        figure,
    )


def _row(axis: Axes, place: int, one: Comparison) -> None:
    colour = {"better": COLOURS[3], "worse": COLOURS[2]}.get(one.word, "0.25")
    if one.difference.interval is not None:
        axis.plot(one.difference.interval, (place, place), color=colour, linewidth=1.8)
    marker = {"better": "^", "worse": "v", "equivalent": "s"}.get(one.word, "o")
    axis.plot(one.difference.mean, place, marker=marker, markersize=6, color=colour)
