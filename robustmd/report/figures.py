"""The figures of a study: each of `FIGURES` draws one, or None where the runs do not allow it.

A line is the mean over the seeds of a row, at the iterations that all of them have, its band the
spread. Nothing here is loaded by `robustmd report --help`.
"""

import io
import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import LogLocator, NullFormatter

from robustmd.errors import printable
from robustmd.registry import METHODS
from robustmd.report import statistics, summary, tables
from robustmd.report.front import Front, front
from robustmd.report.numbers import (
    Quantity,
    Study,
    some_text,
)
from robustmd.runs.records import Frame

RC: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "hatch.linewidth": 0.6,
    "savefig.dpi": 160,
    "pdf.fonttype": 42,  # letters stay letters
    "text.parse_math": False,
}
# matplotlib takes a letter from the first of these that has it; the others are for Chinese,
# Japanese and Korean, as Linux, macOS and Windows have them.
FAMILIES = ["DejaVu Sans", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Arial Unicode MS"]
FAMILIES += ["Microsoft YaHei", "Malgun Gothic"]
# Each at least 3:1 on white; any two of HUES and black are 24 apart in CIELAB, of DOMAIN_HUES 20,
# also under deuteranopia. Dash patterns and markers alone tell lines apart in grayscale.
HUES = ("#0072B2", "#D55E00", "#00838F", "#E0457B", "#661100", "#332288", "#004D40")
DOMAIN_HUES = (
    "#332288",
    "#E0590B",
    "#00896B",
    "#661100",
    "#8E6BBF",
    "#A0522D",
    "#004D40",
    "#00838F",
)
BLACK, DASHED = "#000000", "--"  # the baseline's and nobody else's
GREY = "#737373"  # of weights that a user fixed
DASHES: tuple[Any, ...] = ("-", "-.", (0, (1, 1)), (0, (6, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("s", "^", "D", "v", "P", "X")  # 5 and 6 make 30 pairs; the baseline has dots
Style = dict[str, Any]  # arguments of `plot`
SAID: dict[str, Style] = {  # the look of a verdict
    "better": {"color": "#00896B", "marker": "^"},
    "worse": {"color": "#D55E00", "marker": "v"},
    "equivalent": {"color": "0.25", "marker": "s"},
    "undecided": {"color": "0.25", "marker": "o"},
}
FIXED: Style = {"color": "0.45", "marker": "o", "markersize": 3.5, "zorder": 2, "linestyle": ""}
BEST: Style = {"color": "black", "marker": "*", "markersize": 12, "markerfacecolor": "none"}
BEST |= {"linestyle": "", "zorder": 5}
WIDTHS = {"column": 3.25, "text": 6.75}  # inches in a paper
PARTS = {"data": ("#E69F00", ""), "model": ("#0072B2", "////"), "adversary": ("#000000", "....")}
PARTS |= {"measurement": ("#56B4E9", "xxxx"), "rest": ("#FFFFFF", "----")}
MOST = 6  # lines in one figure: the baseline and the best five
MOST_LISTED = 40  # rows of a figure that has a line of text for each
MOST_POINTS = 120  # of a line: more cannot be seen
WIDEST = 60  # letters of a name in the legend before it is broken
WHOLE = ("worst", "mean")  # what the domains of a test set are summarised by
WORST = "Largest training loss over the domains, max_k f_k(W_t), at every measured iteration."
PART = " Measurements before the last may take a fixed random part of the training set."
Values = Callable[[Frame], pd.Series]  # of [iteration, domain] of one run


@dataclass(frozen=True)
class Drawing:
    """`name` is the file's, without ending; `caption` says what is drawn, how it is computed, what
    the band is and of how many seeds; `alt` is what someone who cannot see it should know."""

    name: str
    title: str
    caption: str
    figure: Figure
    alt: str = ""
    svg: bytes = b""

    @property
    def pixels(self) -> tuple[int, int]:
        """(width, height) on a page."""
        width, height = self.figure.get_size_inches()
        return round(80 * width), round(80 * height)


@dataclass(frozen=True)
class Line:
    """`band`, over what stands on the horizontal axis: `mean`, `low` and `high` of n seeds, and
    `least`, the smallest value of any seed."""

    label: str
    band: Frame
    n: int
    style: Style


@dataclass(frozen=True)
class Panel:
    """One set of axes; `log` and `zero` (a line at 0) are of the vertical axis, `ends` those of the
    values, where bands end; `bars`: points with error bars in place of bands."""

    title: str
    ylabel: str
    lines: Sequence[Line]
    log: bool = False
    zero: bool = False
    xlabel: str = "iteration"
    log_x: bool = False
    ends: tuple[float, float] = (-np.inf, np.inf)
    bars: bool = False


def figure_style() -> AbstractContextManager[None]:
    """Context in which figures are made: matplotlib's defaults and `RC`, whatever the user's
    matplotlibrc says; nothing stays changed afterwards."""
    installed = set(fontManager.get_font_names())
    families = [name for name in FAMILIES if name in installed]
    return matplotlib.style.context(["default", RC | {"font.family": families}])


def fit(figure: Figure, inches: float) -> None:
    """Makes it as wide as a paper's column or text, without its title, letters of 7.5 pt; in a
    column the panels stand below each other."""
    axes, (_, height) = figure.axes, figure.get_size_inches()
    if inches == WIDTHS["column"] and len(axes) > 1:
        specification = axes[0].get_subplotspec()
        lines = specification.get_gridspec().nrows if specification else 1
        grid_of_one = figure.add_gridspec(len(axes), 1)
        for place, axis in enumerate(axes):
            axis.set_subplotspec(grid_of_one[place])
            axis.tick_params(labelleft=True)
        height *= 0.75 * len(axes) / lines
    figure.suptitle("")
    handles: dict[str, Any] = {}
    for legend in figure.legends:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            handles[text.get_text().replace("\n", " ")] = handle
        legend.remove()
    figure.set_size_inches(inches, height)
    if handles:
        add_legend(figure, handles)
    for text in figure.findobj(Text):
        text.set_fontsize(7.5)


def image_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a "png", "pdf" or "svg" file; `savefig` would draw it twice."""
    out = io.BytesIO()
    with figure_style():
        if kind == "png":
            figure.set_dpi(RC["savefig.dpi"])
            FigureCanvasAgg(figure).print_png(out)
        elif kind == "pdf":
            FigureCanvasPdf(figure).print_pdf(out)
        else:
            FigureCanvasSVG(figure).print_svg(out)
    figure.set_layout_engine("none")
    return out.getvalue()


def place_style(place: int, colour: str) -> Style:
    """The look of line number `place`."""
    dashes, marker = DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)]
    return {"color": colour, "linestyle": dashes, "marker": marker}


def domain_style(place: int) -> Style:
    return place_style(place, DOMAIN_HUES[place % len(DOMAIN_HUES)])


def contrast(colour: np.ndarray) -> float:
    """Of red, green and blue in [0, 1] on white, from 1 to 21 (WCAG 2)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05))


def shades(hue: str, count: int) -> list[str]:
    """From light, which is still 3:1 on white, to dark; of one the hue itself."""
    if count == 1:
        return [hue]
    colour = np.array(to_rgb(hue))
    lighter = (colour + (1 - colour) * share for share in np.linspace(1, 0, 101))
    light = next(one for one in lighter if contrast(one) >= 3)
    return [to_hex(light + (0.7 * colour - light) * share) for share in np.linspace(0, 1, count)]


def row_styles(study: Study) -> dict[str, Style]:
    """A row looks the same in every figure: the baseline is black and dashed, another method has
    its hue, its variants from light to dark, in the order of the table, which is that of λ; an
    individual model has the colour of its domain."""
    free = itertools.count(1 + max(METHODS.flag(name, "look") or 0 for name in METHODS))
    own = {*study.baseline_rows(study.baseline).index}
    kinds: dict[Any, list[str]] = {}
    taken: set[str] = set()  # of methods that have the same hue, the second has the next free one
    for row, one in study.rows.iterrows():
        kinds.setdefault((one["label"], row in own), []).append(str(row))
    found = {}
    for (_, is_baseline), rows in kinds.items():
        method, domain = study.rows.loc[rows[0], ["method", "domain"]]
        if domain is not None:
            place = study.domains.index(domain) if domain in study.domains else next(free)
            hue = DOMAIN_HUES[place % len(DOMAIN_HUES)]
        elif is_baseline or METHODS.flag(method, "look") == 0:
            place, hue = 1, BLACK if is_baseline else GREY
        else:
            place = METHODS.flag(method, "look") or next(free)
            first = (place - 1) % len(HUES)
            order = (*HUES[first:], *HUES[:first])
            hue = next((colour for colour in order if colour not in taken), order[0])
            taken.add(hue)
        for i, (row, colour) in enumerate(zip(rows, shades(hue, len(rows)), strict=True)):
            found[row] = place_style(place - 1 + i, colour)
            if is_baseline:
                found[row] |= {"linestyle": DASHED, "marker": "o"}
    return {row: found[row] for row in study.rows.index}


def grid(
    title: str,
    count: int,
    columns: int,
    panel: tuple[float, float],
    around: tuple[float, float] = (0.0, 0.4),
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes, at most `columns` beside each other, each of `panel` inches and
    all with `around` more; `shared` is `subplots`'. To be called in `figure_style()`."""
    columns = min(columns, count)
    lines = -(-count // columns)
    size = (around[0] + panel[0] * columns, around[1] + panel[1] * lines)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, **shared).ravel()
    for unused in axes[count:]:
        unused.remove()
    figure.suptitle(printable(title), fontsize=10)
    return figure, list(axes[:count])


def add_legend(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """Names below all panels; the figure is made higher for them."""
    width = figure.get_figwidth()
    widest = max(10, min(WIDEST, int((width - 0.8) / 0.078)))
    names = [wrapped(name, widest) for name in handles]
    longest = max(min(len(name), widest) for name in names)
    columns = max(1, min(len(handles), int(width / (0.075 * longest + 0.65))))
    lines = -(-sum(name.count("\n") + 1 for name in names) // columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * lines + 0.1)
    look = {"handlelength": 3.6, "columnspacing": 1.4}
    figure.legend(handles.values(), names, loc="outside lower center", ncols=columns, **look)


def wrapped(text: str, width: int) -> str:
    """Anybody's text in lines of at most `width` letters; a legend passes over labels that begin
    with an underscore."""
    shown = "\n".join(textwrap.wrap(printable(text), width)) or " "
    return f" {shown}" if shown.startswith("_") else shown


def log_labels(axis: Axis, low: float, high: float) -> None:
    """Labels of an axis from `low` to `high` such as 0.2, not 2 × 10⁻¹; those at 2 and 5 only
    where there are few decades."""
    few = high / low < 1e3
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if few else LogLocator(numticks=6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def some_rows(study: Study, rows: Sequence[str]) -> list[str]:
    """At most `MOST` in their order: the baseline, then those with the lowest worst-case training
    loss."""
    means = study.values["worst", "train", "loss"].groupby("row").mean()
    first = {*study.baseline_rows(study.baseline).index}
    kept = {*sorted(rows, key=lambda row: (row not in first, means[row]))[:MOST]}
    return [row for row in rows if row in kept]


def left_out_words(study: Study, shown: int, rows: int) -> str:
    """What a caption says where not every row of the table is drawn."""
    if shown >= rows:
        return ""
    return (
        f" {shown} of {rows} rows are drawn: {study.baseline} and those with the lowest "
        "worst-case training loss; the table has all."
    )


def losses_of(study: Study, run: str) -> Frame:
    """f_k(W_t) on the training set, a column for each domain."""
    return study.measured["loss"][study.domains].loc[(run, "train")]


def line_of(
    study: Study, row: str, values: Callable[[str], pd.Series], label: str, style: Style
) -> Line | None:
    """Of the row's runs that have any value, at the iterations that all of those have, of which
    `MOST_POINTS` are drawn."""
    runs = study.runs[study.runs["row"] == row]
    by_seed = {seed: found for run, seed in runs["seed"].items() if len(found := values(str(run)))}
    if not by_seed:
        return None
    whole = pd.concat(by_seed, axis=1, join="inner")
    whole = whole.iloc[np.linspace(0, len(whole) - 1, min(len(whole), MOST_POINTS)).astype(int)]
    mean, n = whole.mean(axis=1), len(by_seed)
    half = statistics.spread(whole.std(axis=1), n, study.spread) if n > 1 else 0.0
    band = {"mean": mean, "low": mean - half, "high": mean + half, "least": whole.min(axis=1)}
    return Line(label, pd.DataFrame(band), n, style)


def lines_of(study: Study, rows: Sequence[str], values: Callable[[str], pd.Series]) -> list[Line]:
    """A line for each of `some_rows` that has any value."""
    looks = row_styles(study)
    shown = (line_of(study, row, values, row, looks[row]) for row in some_rows(study, rows))
    return with_counts([line for line in shown if line is not None])


def with_counts(lines: list[Line]) -> list[Line]:
    """The lines, with "(n = 2)" in their names where not all n are the same."""
    if len({line.n for line in lines}) < 2:
        return lines
    return [replace(line, label=f"{line.label} (n = {line.n})") for line in lines]


def of_losses(study: Study, of: Values) -> Callable[[str], pd.Series]:
    return lambda run: of(losses_of(study, run))


def of_weights(study: Study, of: Values) -> Callable[[str], pd.Series]:
    empty = pd.DataFrame(columns=study.domains, dtype=float)
    return lambda run: of(study.weights.get(run, empty))


def band_words(study: Study, lines: Sequence[Line]) -> str:
    """ "Line: mean over n = 3 seeds; band: ± one standard error…": what line and band are."""
    counts = sorted({line.n for line in lines})
    if counts == [1]:
        return "n = 1 seed: no band."
    n = f"n = {counts[0]} seeds" if len(counts) == 1 else "n seeds, n as named"
    alone = " (none where n = 1)" if counts[0] == 1 else ""
    return f"Line: mean over {n}; band: ± {statistics.SPREADS[study.spread]}{alone}."


def line_drawing(
    study: Study,
    name: str,
    title: str,
    what: str,
    panels: Sequence[Panel],
    rows: Sequence[str] = (),
    *,
    shown: int = 0,
    more: str = "",
    alt: str = "",
    share_y: bool = False,
) -> Drawing | None:
    """Panels of lines with a caption, None without a line. `what`: its beginning, before what line
    and band are and `more`; `rows`: those of the table that could be shown, `shown`: how
    many are, where not each of them is a line."""
    lines = [line for panel in panels for line in panel.lines]
    if not lines:
        return None
    columns = 3 if len(panels) > 4 else 2
    with figure_style():
        figure, axes = grid(study.data, len(panels), columns, (4.2, 2.9), sharey=share_y)
        for axis, panel in zip(axes, panels, strict=True):
            draw_panel(axis, panel, log_limits(panels if share_y else [panel]))
        add_legend(figure, {line.label: Line2D([], [], **line.style) for line in lines})
    ends = (
        f"{panel.title}: "
        + ", ".join(f"{line.label} {line.band['mean'].iloc[-1]:.3g}" for line in panel.lines)
        for panel in panels
    )
    count = shown or len({line.label for line in lines})
    left_out = left_out_words(study, count, len(rows))
    caption = f"{what} {band_words(study, lines)}{more}{left_out}"
    said = alt or f"{title} over the iterations; at the end: {'; '.join(ends)}"
    return Drawing(name, title, caption, figure, said)


def log_limits(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """Of the log axis that these panels have in common: it begins at the smallest value of any
    seed. None where it is linear, as where nothing is above 0."""
    lines = [line for panel in panels if panel.log for line in panel.lines]
    least = (line.band["least"] for line in lines)
    above = [values.min() for one in least if len(values := one[one > 0])]
    if not above:
        return None
    return min(above) / 1.3, max(*above, *(line.band["high"].max() for line in lines)) * 1.3


def draw_panel(axis: Axes, panel: Panel, limits: tuple[float, float] | None) -> None:
    """Means with about eight markers, shifted from line to line, and the bands behind them; what
    is below a log axis stands at its lower end."""
    for place, line in enumerate(panel.lines):
        shown = line.band.clip(*panel.ends)
        shown = shown if limits is None else shown.clip(lower=limits[0])
        every = max(1, len(shown) // 8)
        marked = None if panel.bars else (place * every // 5 % every, every)
        axis.plot(shown.index, shown["mean"], markevery=marked, **line.style)
        if panel.bars and line.style["marker"]:
            axis.vlines(shown.index, shown["low"], shown["high"], line.style["color"], linewidth=1)
        elif line.n > 1:
            look: Style = {"color": line.style["color"], "alpha": 0.15, "linewidth": 0}
            axis.fill_between(shown.index, shown["low"], shown["high"], **look)
    if panel.zero:
        axis.axhline(0.0, color="0.4", linewidth=0.8, zorder=1)
    axis.set_title(wrapped(panel.title, 44))
    axis.set(xlabel=panel.xlabel, ylabel=printable(panel.ylabel))
    if limits is not None:
        axis.set(yscale="log", ylim=limits)
        log_labels(axis.yaxis, *limits)
    if panel.log_x:
        axis.set_xscale("log")
        log_labels(axis.xaxis, *axis.get_xlim())


def quantile(share: float) -> Values:
    """Of the domains' losses within a run; 1.0: the worst domain's."""
    return lambda by_domain: by_domain.quantile(share, axis=1)


def apart(low: float = 0.0, high: float = 1.0) -> Values:
    """How far two quantiles of the domains' losses lie apart within a run."""
    return lambda by_domain: by_domain.quantile(high, axis=1) - by_domain.quantile(low, axis=1)


def first_minus_last(by_domain: Frame) -> Frame:
    """The paper's a − b: of the first and the last domain of the data set."""
    return by_domain.iloc[:, 0] - by_domain.iloc[:, -1]


def of_two_domains(letter: str, study: Study, unit: str = "") -> str:
    """ "f(mnist) − f(svhn) [nats]": of the first and the last domain."""
    ends = (study.domains[0], study.domains[-1])
    first, last = (name if len(name) <= 12 else f"{name[:11]}…" for name in ends)
    return f"{letter}({first}) − {letter}({last}){unit}"


def worst_case_training_loss(study: Study) -> Drawing | None:
    """The paper's Fig. 2: individual models and mixtures in panels of their own, each with its own
    log axis: an individual model's worst loss may be a hundred times a mixture's."""
    label = f"worst-case training loss{study.loss.bracket}"
    parts = {"individual models": study.individuals, "mixtures": study.mixtures}
    worst = of_losses(study, quantile(1.0))
    panels = [
        Panel(title, label, lines_of(study, [*rows.index], worst), log=True)
        for title, rows in parts.items()
        if len(rows)
    ]
    what = f"{WORST} Individual models and mixtures apart, each on a log axis of its own."
    name, title = "worst_case_training_loss", "Worst-case training loss"
    return line_drawing(study, name, title, what, panels, study.rows.index, more=PART)


def unseen_test_accuracy(study: Study) -> Drawing | None:
    """Domains that train and those kept out, apart; None where no domain is unseen."""
    if not study.unseen or study.accuracy == "loss":
        return None

    def worst_of(domains: list[str]) -> list[Line]:
        test = study.measured["accuracy"].reindex(columns=domains).xs("test", level="split")
        return lines_of(study, [*study.rows.index], lambda run: test.loc[run].dropna().min(axis=1))

    which = f"{'worst of ' if len(study.unseen) > 1 else ''}{some_text(study.unseen)}"
    label, apart_title = "test accuracy [%]", f"{which} {tables.UNSEEN}"
    panels = [
        Panel("worst trained domain", label, worst_of(study.domains), ends=(0.0, 100.0)),
        Panel(apart_title, label, worst_of(study.unseen), ends=(0.0, 100.0)),
    ]
    what = (
        "Test accuracy at every measured iteration. Left: the lowest over the domains that train, "
        f"within each run. Right: {apart_title}, kept out of training."
    )
    name, title = "unseen_test_accuracy", "Test accuracy, trained and unseen"
    return line_drawing(study, name, title, what, panels, study.rows.index, share_y=True)


def best_and_worst_training_loss(study: Study) -> Drawing | None:
    """The paper's figure of the noise tasks, two panels with one axis: the distance between a
    method's two lines is what its domains lie apart. With two domains the discrepancy has both."""
    rows, label = [*study.mixtures.index], f"training loss{study.loss.bracket}"
    if len(study.domains) < 3 or not rows:
        return None
    panels = [
        Panel(
            f"{which} domain", label, lines_of(study, rows, of_losses(study, quantile(q))), log=True
        )
        for which, q in (("worst", 1.0), ("best", 0.0))
    ]
    what = (
        f"Largest (left) and smallest (right) training loss over the {len(study.domains)} domains, "
        "within each run, on one log axis."
    )
    name, title = "best_and_worst_training_loss", "Best and worst training loss"
    return line_drawing(study, name, title, what, panels, rows, more=PART, share_y=True)


def discrepancy(study: Study) -> Drawing | None:
    """The paper's f_a − f_b beside the gap between the worst and the best domain on a log axis,
    where late differences can be told apart; of many domains, where two say little, what most of
    them lie apart."""
    rows, unit = [*study.mixtures.index], study.loss.bracket
    if len(study.domains) < 2 or not rows:
        return None
    gaps = lines_of(study, rows, of_losses(study, apart()))
    if study.is_many:
        what = (
            f"How far the training losses of the {len(study.domains):,} domains lie apart within "
            "each run. Left: their 90 % minus their 10 % quantile; right: the largest minus the "
            "smallest; log axes."
        )
        middle = lines_of(study, rows, of_losses(study, apart(0.1, 0.9)))
        title, label = "90 % − 10 % quantile, within each run", f"difference of losses{unit}"
        left = Panel(title, label, middle, log=True)
    else:
        what = (
            f"Left: f_a(W_t) − f_b(W_t) with a = {study.domains[0]}, the first, and "
            f"b = {study.domains[-1]}, the last domain of the data set. Right: the largest minus "
            "the smallest training loss over the domains, within each run, on a log axis."
        )
        signed = lines_of(study, rows, of_losses(study, first_minus_last))
        label = of_two_domains("f", study, unit)
        left = Panel("signed, first − last domain", label, signed, zero=True)
    right = Panel(
        "largest − smallest, within each run", f"largest − smallest loss{unit}", gaps, log=True
    )
    name, title = "discrepancy", "Discrepancy of the training losses"
    return line_drawing(study, name, title, what, [left, right], rows, more=PART)


def moving(study: Study) -> list[str]:
    """The mixtures whose weights change in a run: those that a user fixed do not."""
    moves = {run for run, p in study.weights.items() if ((p.max() - p.min()) > 1e-9).any()}
    rows = {*study.runs["row"][study.runs.index.isin(moves)]}
    return [row for row in study.mixtures.index if row in rows]


def weights(study: Study) -> Drawing | None:
    """One panel for each method whose weights move, one line for each domain; of many domains the
    last weights, sorted: which shares are played, not by whom."""
    rows = moving(study)
    if not rows:
        return None
    if study.is_many:
        return _sorted_weights(study)
    shown = some_rows(study, rows)
    sizes = study.runs.groupby("row").size()
    panels = []
    for row in shown:
        title = f"{row} (n = {sizes[row]})" if sizes[shown].nunique() > 1 else row
        found = (
            line_of(study, row, of_weights(study, itemgetter(name)), name, domain_style(i))
            for i, name in enumerate(study.domains)
        )
        lines = [line for line in found if line is not None]
        panels.append(Panel(title, "weight p", lines, ends=(0.0, 1.0)))
    what = "Weight p_k that iteration t gave to each domain, of the methods that move it."
    title = "Weights of the domains"
    drawn = len(shown)
    return line_drawing(study, "weights", title, what, panels, rows, shown=drawn, share_y=True)


def _sorted_weights(study: Study) -> Drawing | None:
    rows, count = [*study.mixtures.index], len(study.domains)

    def by_rank(p: Frame) -> Frame:
        last = np.sort(p.to_numpy()[-1:].ravel())[::-1]
        return pd.Series(last, index=range(1, len(last) + 1))

    sizes = lines_of(study, rows, of_weights(study, lambda p: count * by_rank(p)))
    sums = lines_of(study, rows, of_weights(study, lambda p: by_rank(p).cumsum()))
    half = (f"{one.label} {int((one.band['mean'] < 0.5 - 1e-9).sum()) + 1:,}" for one in sums)
    rank = "domain, by its weight"
    panels = [
        Panel(
            "weights, largest first", "K·p (same for all: 1)", sizes, xlabel=rank, ends=(0, count)
        ),
        Panel("together", "weight of the first r domains", sums, xlabel=rank, ends=(0.0, 1.0)),
    ]
    what = (
        f"The last recorded weights of the {count:,} domains, sorted within each run. Left: K·p_k, "
        "1 for the same weight on all; right: what the r domains with the largest weights hold "
        "together."
    )
    alt = f"Of {count:,} domains half of the weight is on: {', '.join(half)}"
    title = "Weights of the domains, sorted"
    return line_drawing(study, "weights", title, what, panels, rows, alt=alt)


def drift(study: Study) -> Drawing | None:
    """The paper's p_a − p_b of the weights that each iteration used, of two domains."""
    rows = [*study.mixtures.index]
    if len(study.domains) != 2 or not rows:
        return None
    lines = lines_of(study, rows, of_weights(study, first_minus_last))
    if not any(np.ptp(line.band["mean"]) > 0 for line in lines):
        return None
    what = (
        f"p_a − p_b of the weights used in iteration t, with a = {study.domains[0]}, the first, "
        f"and b = {study.domains[-1]}, the last domain of the data set: −1 or 1 is all weight on "
        "one of them, 0 the same weight."
    )
    panel = Panel("weights", of_two_domains("p", study), lines, zero=True, ends=(-1.0, 1.0))
    return line_drawing(study, "drift", "Drift of the weights", what, [panel], rows)


def lambda_worst(study: Study) -> Drawing | None:
    """Worst training loss, worst and mean test accuracy against λ; the baseline is a line."""
    found = summary.sweeps(study)
    if not found:
        return None
    across = [*study.baseline_rows(study.baseline).index[:1]]
    looks = row_styles(study)
    every = [lam for rows in found.values() for lam in rows.values()]

    def over(name: Quantity, label: str, rows: Mapping[float, str], style: Style) -> Line:
        groups = study.values[name].groupby("row")
        mean, std, n = (
            pd.Series({lam: of[row] for lam, row in rows.items()})
            for of in (groups.mean(), groups.std(), groups.size())
        )
        half = statistics.spread(std, n, study.spread).fillna(0.0)
        band = {"mean": mean, "low": mean - half, "high": mean + half, "least": mean}
        return Line(label, pd.DataFrame(band), int(n.max()), style)

    def panel(title: str, label: str, name: Quantity) -> Panel:
        lines = [
            over(name, label, {lam: row for row, lam in rows.items()}, look)
            for label, rows in found.items()
            for look in [looks[[*rows][-1]]]
        ]
        for row in across:
            level = looks[row] | {"marker": ""}
            lines.append(over(name, row, dict.fromkeys((min(every), max(every)), row), level))
        return Panel(title, label, with_counts(lines), xlabel="λ", log_x=True, bars=True)

    metric = study.metrics[study.accuracy]
    what = f"worst test {study.accuracy}"
    names = (("worst", "train", "loss"), *((over, "test", study.accuracy) for over in WHOLE))
    unit = f" [{metric.unit}]" if metric.unit else ""
    panels = [
        panel("worst domain, training", f"worst-case training loss{study.loss.bracket}", names[0]),
        panel("worst domain, test", f"{what}{unit}", names[1]),
        panel("mean over the domains, test", f"mean test {study.accuracy}{unit}", names[2]),
    ]
    said = []
    for line in panels[1].lines[: len(found)]:
        means = line.band["mean"].items()
        points = (f"{lam:g}: {mean:.2f} {metric.unit}".strip() for lam, mean in means)
        said.append(f"{line.label}: {', '.join(points)}")
    words = (
        f"Worst-case training loss, {what} and the mean over the domains, as in the table, against "
        "λ (log axis; small λ follows the worst domain, large λ stays near the prior)."
        f"{f' Dashed: {across[0]}.' if across else ''}"
    )
    alt = f"{what.capitalize()} by λ: {'; '.join(said)}"
    title = "Influence of λ on the worst domain"
    return line_drawing(study, "lambda_worst", title, words, panels, alt=alt)


def row_figure(
    title: str, names: Sequence[str], columns: int = 1, marks: int = 1
) -> tuple[Figure, list[Axes]]:
    """A figure whose axes have the rows `names`, the first on top, with so many marks in a row."""
    shown = [wrapped(name, 34) for name in names]
    height = sum(max(0.12 + 0.17 * (name.count("\n") + 1), 0.11 * marks) for name in shown)
    width = 0.3 + 0.08 * max(len(line) for name in shown for line in name.splitlines())
    figure, axes = grid(title, columns, columns, (3.4, height), (width, 1.0), sharey=True)
    axes[0].set_yticks(range(len(names)), shown)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for axis in axes:
        axis.grid(axis="y", visible=False)
    return figure, axes


def first_words(shown: int, rows: int) -> str:
    return f" The first {shown} of {rows} rows." if rows > shown else ""


def paired_differences(study: Study) -> Drawing | None:
    """Left the worst test accuracy (or loss), right the price; the gray strip is what counts as
    equivalent."""
    every = study.comparisons
    if every.empty:
        return None
    gains = summary.gains(study, every)
    gains = gains.sort_values("difference", ascending=gains["better"].iloc[0] == "smaller")
    prices = every[every["price"]].loc[gains.index + 1]
    baseline, first = study.baseline, gains.iloc[0]
    paid = "mean over the domains" if study.is_many else f"{baseline}’s best domain"
    unit = f" [{first['unit']}]" if first["unit"] else ""
    rows = gains[:MOST_LISTED]
    with figure_style():
        names = [f"{one.method} (n = {one.n})" for one in rows.itertuples()]
        figure, axes = row_figure(study.data, names, columns=2)
        titles = (first["quantity"], f"price: {paid}")
        for axis, title, lines in zip(axes, titles, (rows, prices[:MOST_LISTED]), strict=True):
            for place, one in enumerate(lines.itertuples()):
                look = SAID[one.verdict]
                if one.n > 1:
                    ends = one.ci95_low, one.ci95_high
                    axis.plot(ends, (place, place), color=look["color"], linewidth=1.8)
                axis.plot(one.difference, place, markersize=6, **look)
            axis.axvspan(-first["margin"], first["margin"], color="0.92", zorder=0)
            axis.axvline(0.0, color="0.3", linewidth=0.8, zorder=1)
            axis.set_title(printable(title))
            axis.set_xlabel(printable(f"method − {baseline}{unit}"))
            axis.margins(x=0.1)
    within = f"±{first['margin']:g} {first['unit']}".strip()
    measured = "points of test accuracy" if first["unit"] == "points" else f"test loss{unit}"
    where = f"the {paid}" if study.is_many else f"on the domain that {baseline} does best on"
    metric = study.metrics[study.accuracy]
    said = (
        f"{one.method}: {tables.signed(metric, one.difference)} {one.unit}, {word}"
        for one, word in zip(gains.itertuples(), tables.verdict_texts(gains), strict=True)
    )
    caption = (
        f"Method − {baseline} in {measured}, paired by seed: mean (dot) and 95 % t "
        "interval (line; none where n < 2). Left: the worst domain, within each run. Right: the "
        f"price, {where}. Gray: within {within}, which counts as equivalent."
        f"{first_words(len(rows), len(gains))}"
    )
    title = f"Paired differences to {baseline}"
    return Drawing("paired_differences", title, caption, figure, "; ".join(said))


def domain_accuracy(study: Study) -> Drawing | None:
    """The test accuracy (or loss) of each domain, a mark for each row."""
    rows, score = some_rows(study, [*study.mixtures.index]), study.accuracy
    if study.is_many or not rows:
        return None
    groups = study.values[[(name, "test", score) for name in study.domains]].groupby("row")
    mean, n = groups.mean().loc[rows], groups.size()
    half = groups.std().apply(lambda std: statistics.spread(std, n, study.spread)).fillna(0.0)
    low = np.maximum(mean - half.loc[rows], 0.0)
    high = np.minimum(mean + half.loc[rows], 100.0 if score == "accuracy" else np.inf)
    metric, looks = study.metrics[score], row_styles(study)
    with figure_style():
        figure, (axis,) = row_figure(study.data, study.domains, marks=len(rows))
        for place, row in enumerate(rows):
            at = np.arange(len(study.domains)) + 0.7 * ((place + 0.5) / len(rows) - 0.5)
            look = looks[row] | {"linestyle": ""}
            axis.hlines(at, low.loc[row], high.loc[row], look["color"], linewidth=1)
            axis.plot(mean.loc[row], at, **look)
        axis.set_xlabel(f"test {score} [{metric.unit}]" if metric.unit else f"test {score}")
        add_legend(figure, {row: Line2D([], [], **looks[row] | {"linestyle": ""}) for row in rows})
    count = tables.range_text(n[rows])
    bars = f"bars: ± {statistics.SPREADS[study.spread]}"
    caption = (
        f"Test {score} of each domain, as in the table. Marks: mean over n = {count} seeds; "
        f"{'no bars' if count == '1' else bars}."
        f"{left_out_words(study, len(rows), len(study.mixtures))}"
    )
    said = (
        f"{name}: {', '.join(f'{row} {mean.loc[row].iloc[i]:.3g}' for row in rows)}"
        for i, name in enumerate(study.domains)
    )
    return Drawing("domain_accuracy", "Each domain", caption, figure, "; ".join(said))


def running_time(study: Study) -> Drawing | None:
    """Where the time of a run goes: one bar for each method, mean over seeds, with its parts
    stacked and its whole length in words."""
    spent = pd.DataFrame([*study.runs["seconds"]], index=study.runs["row"])
    spent = spent.reindex(columns=["training", "adversary", "measurement", "data", "total"])
    known = spent.dropna(subset=["training", "adversary", "measurement"])
    known = known[known.index.isin(study.rows.index[:MOST_LISTED])]
    if known.empty:
        return None
    data, whole = known["data"].fillna(0.0), known["training"] + known["measurement"]
    parts = pd.DataFrame(
        {
            "data": data,
            "model": known["training"] - data - known["adversary"],
            "adversary": known["adversary"],
            "measurement": known["measurement"],
            "rest": known["total"].fillna(whole) - whole,
        }
    )
    parts = parts.clip(lower=0.0).groupby("row", sort=False).mean()
    totals, starts = parts.sum(axis=1), parts.cumsum(axis=1) - parts
    with figure_style():
        figure, (axis,) = row_figure(study.data, [*parts.index])
        handles = {}
        for part, (fill, hatch) in PARTS.items():
            if (parts[part] > 0).any():
                edge = "white" if fill == "#000000" else "black"
                look: Style = {"facecolor": fill, "hatch": hatch, "linewidth": 0.4}
                places = range(len(parts))
                axis.barh(
                    places, parts[part], left=starts[part], height=0.62, edgecolor=edge, **look
                )
                handles[part] = Patch(edgecolor="0.4", **look)
        for place, total in enumerate(totals):
            beside: Style = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(tables.seconds_text(total), (total, place), fontsize=8, **beside)
        axis.set_xlim(0, totals.max() * 1.18 or 1.0)
        axis.set_xlabel("seconds of one run")
        add_legend(figure, handles)
    devices = sorted({*study.runs["device"]})
    unlike = "; times of several devices are not comparable" if len(devices) > 1 else ""
    caption = (
        "Seconds of one run, mean over its seeds, by part: data (draw and copy the batches), model "
        "(forward, backward, step), adversary (the weights' update, with its full passes over the "
        "data where a method makes them), measurement, and the rest (start, preparation, writing). "
        f"Device: {', '.join(devices)}{unlike}. Times of a machine that did other work at once are "
        f"longer.{first_words(len(parts), len(study.rows))}"
    )
    said = ", ".join(f"{row} {tables.seconds_text(total)}" for row, total in totals.items())
    alt = f"Seconds of one run: {said}"
    return Drawing("running_time", "Running time", caption, figure, alt)


def _draw_front(
    axis: Axes,
    study: Study,
    front: Front,
    looks: Sequence[tuple[str, Style]],
    columns: Sequence[Quantity],
) -> None:
    """Means and bars on log axes around them; a loss of 0 and what a bar has below stand at the
    lower end."""
    groups = study.values[[*columns]].groupby("row")
    mean, n = groups.mean(), groups.size()
    half = groups.std().apply(lambda std: statistics.spread(std, n, study.spread)).fillna(0.0)
    rows = [row for row, _ in looks]
    at, above = mean.loc[rows].to_numpy(), (mean + half).loc[rows].to_numpy()
    low = np.array([x[x > 0].min() if (x > 0).any() else 1.0 for x in at.T])
    high = np.maximum(low, above.max(axis=0))
    room = np.maximum(1.1, (high / low) ** 0.15)
    low, high = low / room, high * room
    at, below = np.maximum(at, low), np.maximum((mean - half).loc[rows], low).to_numpy()
    for (_, look), (x, y), start, end in zip(looks, at, below, above, strict=True):
        bar: Style = {"color": look["color"], "linewidth": 0.7, "zorder": look["zorder"]}
        axis.plot([start[0], max(start[0], end[0])], [y, y], **bar)
        axis.plot([x, x], [start[1], max(start[1], end[1])], **bar)
        axis.plot(x, y, **look)
    if len(study.domains) == 2:
        line, points = at[: len(front.points)], [*front.points]
        axis.plot(*line.T, color=FIXED["color"], linewidth=1.2, zorder=2)
        same = max(low), min(high)
        axis.plot(same, same, color="0.8", linestyle=":", linewidth=1.0, zorder=1)
        for p in dict.fromkeys((points[0], points[-1], front.best)):
            text = f"({', '.join(f'{weight:.3g}' for weight in p)})"
            beside: Style = {"xytext": (5, 6), "textcoords": "offset points"}
            axis.annotate(text, line[points.index(p)], fontsize=7, color="0.3", **beside)
    axis.set(xscale="log", yscale="log", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    log_labels(axis.xaxis, low[0], high[0])
    log_labels(axis.yaxis, low[1], high[1])


def static_front(study: Study) -> Drawing | None:
    """K = 2: f_b against f_a, the fixed weights joined in the order of p_a. K > 2: the worst
    domain's loss against the mean over the domains, the fixed weights as dots."""
    found = front(study)
    if found is None:
        return None
    shown, are_two = some_rows(study, found.learned), len(study.domains) == 2
    learned = {
        row: look | {"linestyle": "", "markersize": 5, "alpha": 0.9, "zorder": 4}
        for row, look in row_styles(study).items()
        if row in shown
    }
    best = found.points[found.best]
    looks = [*((row, FIXED) for row in found.points.values()), *learned.items(), (best, BEST)]
    where = study.domains if are_two else ["mean", "worst"]
    names = (
        [f"on {name}" for name in where] if are_two else ["mean over the domains", "worst domain"]
    )
    n = study.values.groupby("row").size()
    with figure_style():
        figure, axes = grid(study.data, 2, 2, (4.2, 3.5))
        for axis, split in zip(axes, ("train", "test"), strict=True):
            _draw_front(axis, study, found, looks, [(name, split, "loss") for name in where])
            axis.set(xlabel=printable(names[0]), ylabel=printable(names[1]))
            axis.set_title(f"{'training' if split == 'train' else 'test'} loss{study.loss.bracket}")
        named = {"fixed weights": FIXED, "best fixed weights": BEST, **learned}
        add_legend(figure, {name: Line2D([], [], **look) for name, look in named.items()})
    what = (
        "The worst domain's loss (within each run) against the mean over the domains, log axes."
        f" Gray: {len(found.points)} fixed weights."
    )
    if are_two:
        first, last = study.domains
        what = (
            f"Loss on {last} against loss on {first}, log axes, with the weights (p_a, p_b) for "
            f"a = {first} and b = {last} beside the line's ends and its best point. Line: "
            f"{len(found.points)} fixed weights in the order of p_a; dotted: equal losses."
        )
    count = tables.range_text(n[[row for row, _ in looks]])
    bars = f"Markers: mean over n = {count} seeds; bars: ± {statistics.SPREADS[study.spread]}."
    caption = (
        f"{what} {'n = 1 seed: no bars.' if count == '1' else bars} "
        "Star: the fixed weights with the smallest mean worst training loss, chosen on these runs, "
        f"which favours them. {found.answer}{left_out_words(study, len(shown), len(found.learned))}"
    )
    title = "Fixed weights against learned ones"
    return Drawing("static_front", title, caption, figure, found.answer)


FIGURES = (  # in the order of a report: the page shows the first two, and folds the others
    paired_differences,
    domain_accuracy,
    worst_case_training_loss,
    lambda_worst,
    weights,
    unseen_test_accuracy,
    static_front,
    discrepancy,
    best_and_worst_training_loss,
    drift,
    running_time,
)


def draw_all(study: Study, width: str | None = None) -> Iterator[Drawing]:
    """Draws each figure when it is asked for; `width`: of `WIDTHS`, None: that of a page."""
    for draw in FIGURES:
        made = draw(study)
        if made is not None:
            if width is not None:
                with figure_style():
                    fit(made.figure, WIDTHS[width])
            yield made
