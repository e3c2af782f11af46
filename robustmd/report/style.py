"""One look for all figures: lines told apart by colour-blind readers and in grayscale."""

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib.style
from matplotlib import font_manager

from robustmd.report.aggregate import Group
from robustmd.report.names import clean

RC = {
    "font.size": 9,
    "font.family": "DejaVu Sans",  # ships with matplotlib
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "pdf.fonttype": 42,  # letters stay letters
}

# Okabe and Ito's colours without the yellow, which is too light for a line. The dash patterns alone
# tell lines apart in grayscale; 7 colours and 6 patterns make 42 pairs before one repeats.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES: tuple[Any, ...] = (
    "--",
    "-",
    "-.",
    (0, (1, 1)),
    (0, (6, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
PLACES = {
    "even": 0,
    "opt": 1,
    "oracle": 2,
    "ot": 3,
    "kl": 4,
    "minimax": 5,
    "best_response": 6,
    "multiplicative": 7,
}


def figure_style() -> AbstractContextManager[None]:
    """Context in which figures are made: matplotlib's defaults and `RC`, whatever the user's
    matplotlibrc says; nothing stays changed afterwards."""
    return matplotlib.style.context(["default", RC])


def line_styles(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Arguments of `plot`, one a group. A mixture looks the same in every figure: even is black and
    dashed, opt blue and solid; a second group of a method takes the next free pair."""
    free = itertools.count(len(PLACES))
    taken: set[str] = set()
    places = []
    for position, group in enumerate(groups):
        if group.domain is not None:
            places.append(position)
        elif group.method in PLACES and group.method not in taken:
            places.append(PLACES[group.method])
        else:
            places.append(next(free))
        taken.add(group.method)
    return [
        {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)]}
        for place in places
    ]


def figure_text(text: str) -> str:
    """Text as a figure shows it: no mathematics, no letter that the font lacks, and not hidden from
    the legend, which passes over labels that begin with an underscore."""
    known = font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap()
    shown = "".join(c if ord(c) in known else "?" for c in clean(text)).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
