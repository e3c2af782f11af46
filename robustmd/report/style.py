"""One look for all figures: lines told apart by colour-blind readers and in grayscale."""

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.font_manager import fontManager

from robustmd.registry import METHODS
from robustmd.report.aggregate import Group
from robustmd.report.names import clean

RC = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "hatch.linewidth": 0.6,
    "savefig.dpi": 160,
    "pdf.fonttype": 42,  # letters stay letters
}

# matplotlib takes a letter from the first of these that has it; the others are for Chinese,
# Japanese and Korean, as Linux, macOS and Windows have them.
FAMILIES = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Malgun Gothic",
)

# Okabe and Ito's colours without the yellow, which is too light for a line. Dash patterns and
# markers alone tell lines apart in grayscale: 6 and 5 of them make 30 pairs before one repeats.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES: tuple[Any, ...] = (
    "--",
    "-",
    "-.",
    (0, (1, 1)),
    (0, (6, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v")
HATCHES = ("", "////", "....", "xxxx", "----")
FILLS = ("#E69F00", "#0072B2", "#000000", "#56B4E9", "#FFFFFF")  # of light and dark in turn
Style = dict[str, Any]  # arguments of `plot`


def figure_style() -> AbstractContextManager[None]:
    """Context in which figures are made: matplotlib's defaults and `RC`, whatever the user's
    matplotlibrc says; nothing stays changed afterwards."""
    installed = set(fontManager.get_font_names())
    families = [name for name in FAMILIES if name in installed]
    return matplotlib.style.context(["default", RC | {"font.family": families}])


def line_styles(groups: Sequence[Group]) -> list[Style]:
    """One a group. A mixture looks the same in every figure: even is black and dashed, opt blue and
    solid; a second group of a method takes the next free pair."""
    looks = [METHODS.flag(group.method, "look") for group in groups]
    free = itertools.count(1 + max(METHODS.flag(name, "look") or 0 for name in METHODS))
    taken: set[str] = set()
    places = []
    for position, (group, look) in enumerate(zip(groups, looks, strict=True)):
        if group.domain is not None:
            places.append(position)
        elif look is not None and group.method not in taken:
            places.append(look)
        else:
            places.append(next(free))
        taken.add(group.method)
    return [place_style(place) for place in places]


def place_style(place: int) -> Style:
    """The look of line number `place`, for lines that have no order."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
    }


def ordered_styles(count: int) -> list[Style]:
    """Looks for lines that do have an order, such as values of λ: from dark to light."""
    colours = mpl.colormaps["viridis"]
    shares = [0.85 * i / max(count - 1, 1) for i in range(count)]
    return [place_style(i) | {"color": colours(share)} for i, share in enumerate(shares)]


def figure_text(text: str) -> str:
    """Text as a figure shows it: no mathematics, and not hidden from the legend, which passes over
    labels that begin with an underscore."""
    shown = clean(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
