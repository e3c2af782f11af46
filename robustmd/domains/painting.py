"""A sheet of pictures and texts at places in pixels, painted as PNG or as PDF.

The PNG is Pillow's work, which is quick and light enough for the start of a run. The PDF has its
texts as text and its pictures pixel for pixel; matplotlib, which makes it, is loaded only then.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robustmd.fonts import DEFAULT, Font, in_one_font

INK, GRAY = "#222222", "#777777"
POINTS_A_PIXEL = 0.75
FONT = "DejaVuSans.ttf"
LINE = 1.25  # height of a line, in sizes of its letters


@dataclass(frozen=True)
class Text:
    """One line of text. x, y: the middle of the line's height, at its start, middle or end."""

    x: float
    y: float
    text: str
    size: int
    align: str = "left"  # or centre, right
    colour: str = INK


@dataclass(frozen=True)
class Picture:
    """pixels (uint8 [h, w, 3]) with the left upper corner at x, y, each a square of `zoom`."""

    x: int
    y: int
    pixels: np.ndarray
    zoom: int = 1


@dataclass
class Sheet:
    """What is to be painted, on white; width and height in pixels."""

    width: int
    height: int
    texts: list[Text] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


def text_width(text: str, size: int) -> float:
    """Pixels that a text takes in a size in pixels."""
    shown, font = in_one_font(text)
    return _font(size, font).getlength(shown)


def fitting_size(texts: Iterable[str], width: float, sizes: Sequence[int]) -> int:
    """The first of `sizes` (falling, in pixels) in which every word fits; the last if none does."""
    longest = {word for text in texts for word in text.split()}
    for size in sizes:
        if all(text_width(word, size) <= width for word in longest):
            return size
    return sizes[-1]


def wrapped(text: str, size: int, width: float, most: int = 3) -> list[str]:
    """The text in lines of at most `width` pixels, at most `most` of them; … where it is cut."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined, size) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1]}…"]
    return [_cut(line, size, width) for line in lines] or [""]


def _cut(line: str, size: int, width: float) -> str:
    if text_width(line, size) <= width:
        return line
    line = line.rstrip("…")
    while line and text_width(f"{line}…", size) > width:
        line = line[:-1]
    return f"{line}…"


def paint_png(sheet: Sheet, stream: IO[bytes]) -> None:
    """Write the sheet as a PNG."""
    canvas = Image.new("RGB", (sheet.width, sheet.height), "white")
    for picture in sheet.pictures:
        canvas.paste(Image.fromarray(_zoomed(picture)), (picture.x, picture.y))
    pen = ImageDraw.Draw(canvas)
    anchors = {"left": "lm", "centre": "mm", "right": "rm"}
    for text in sheet.texts:
        place, anchor = (text.x, text.y), anchors[text.align]
        shown, font = in_one_font(text.text)
        pen.text(place, shown, fill=text.colour, font=_font(text.size, font), anchor=anchor)
    canvas.save(stream, "PNG")


def paint_pdf(sheet: Sheet, stream: IO[bytes]) -> None:
    """Write the sheet as a PDF of one page, 4 pixels of the sheet being 3 points."""
    import matplotlib  # noqa: PLC0415 - slow to load, and a run does without
    from matplotlib.backends.backend_pdf import FigureCanvasPdf  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.font_manager import FontProperties  # noqa: PLC0415

    inches = (sheet.width * POINTS_A_PIXEL / 72, sheet.height * POINTS_A_PIXEL / 72)
    figure = Figure(figsize=inches)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, sheet.width), ylim=(sheet.height, 0))
    axes.axis("off")
    for picture in sheet.pictures:
        height, width = (n * picture.zoom for n in picture.pixels.shape[:2])
        box = (picture.x, picture.x + width, picture.y + height, picture.y)
        axes.imshow(picture.pixels, extent=box, interpolation="none", aspect="auto")
    axes.set(xlim=(0, sheet.width), ylim=(sheet.height, 0))  # imshow has moved them
    aligns = {"left": "left", "centre": "center", "right": "right"}
    for text in sheet.texts:
        shown, font = in_one_font(text.text)
        axes.text(
            text.x,
            text.y,
            shown.replace("$", r"\$"),  # a dollar would begin a formula
            fontproperties=FontProperties(family=DEFAULT, fname=font.path if font else None),
            fontsize=text.size * POINTS_A_PIXEL,
            color=text.colour,
            ha=aligns[text.align],
            va="center_baseline",
        )
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        FigureCanvasPdf(figure).print_pdf(stream, metadata={"CreationDate": None})


def _zoomed(picture: Picture) -> np.ndarray:
    return picture.pixels.repeat(picture.zoom, axis=0).repeat(picture.zoom, axis=1)


@cache
def _font(size: int, installed: Font | None) -> ImageFont.FreeTypeFont:
    """None: of matplotlib's own fonts, found without loading it: they know most alphabets."""
    if installed is not None:
        return ImageFont.truetype(installed.path, size)
    found = importlib.util.find_spec("matplotlib")
    folders = found.submodule_search_locations if found else None
    path = Path(next(iter(folders or [""]))) / "mpl-data" / "fonts" / "ttf" / FONT
    if not path.is_file():  # a distribution's matplotlib may keep them elsewhere
        import matplotlib  # noqa: PLC0415

        path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / FONT
    return ImageFont.truetype(str(path), size)
