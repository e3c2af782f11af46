"""A sheet of examples: a row for every domain, a column for every class, as the model sees them.

With few classes there are several examples of each; with many, the columns go on below, so that
the sheet stays about as wide as a page. Sources and licences stand at its foot.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robustmd.domains.domain import Domain, DomainSet
from robustmd.errors import UserError
from robustmd.fonts import NOTE, in_one_font, width

SMALLEST, LARGEST = 64, 96  # sides of a picture on the sheet, in pixels
WIDTH = 1000  # that the columns may take
GAP, CLASS_GAP, BAND_GAP, MARGIN = 3, 8, 16, 14
NAME_WIDTH = 150
FEW = 10  # columns that few classes are brought to
SIZE, FOOT_SIZE = 11, 10  # of letters, in pixels
LINE, LETTER = 1.25, 0.62  # height of a line, and a letter's width, in sizes of the letters
INK, GRAY = "#222222", "#777777"
FORMS = {"png": 1, "pdf": 3}  # pixels of the file to a pixel of the sheet
SEED = 0  # of the choice, whose places are the same in domains of one size


def draw_sheet(
    data: DomainSet,
    stream: IO[bytes],
    *,
    form: str = "png",
    only: Collection[str] | None = None,
    most: int | None = None,
    side: int = LARGEST,
) -> None:
    """Draw training examples of every domain and class.

    only: domains to show; None: all. What is not shown is named at the foot.
    most: how many pictures at most, by leaving classes out evenly, one always being left
    side: pixels that larger images are reduced to; smaller ones are enlarged by whole factors

    Raises UserError where there are no images.
    """
    if data.domains[0].train.are_features:
        raise UserError(f"data {data.name}: has features and no images; no sheet shows them")
    shown = [d for d in data if only is None or d.name in only]
    columns = len(data.classes)
    if most is not None:
        columns = min(columns, max(1, most // max(1, len(shown))))
    classes = [len(data.classes) * i // columns for i in range(columns)]
    count = max(1, FEW // columns)
    if most is not None:
        count = max(1, min(count, most // max(1, columns * len(shown))))
    _Sheet(data, shown, classes, count, side).paint(stream, form)


def evenly(names: Sequence[str], most: int) -> list[str]:
    """All names, or `most` ≥ 2 of more, from the first to the last."""
    if len(names) <= most:
        return list(names)
    return [names[round(i * (len(names) - 1) / (most - 1))] for i in range(most)]


class _Sheet:
    """Texts and pictures at their places in pixels; painted when the height is known.

    classes: indices of those shown; count: examples of each
    """

    def __init__(
        self, data: DomainSet, shown: list[Domain], classes: list[int], count: int, side: int
    ) -> None:
        self.data, self.shown, self.count = data, shown, count
        self.texts: list[tuple[float, float, str, int, str, str]] = []
        self.pictures: list[tuple[int, int, Image.Image]] = []
        larger = max(data.image_size)
        self.zoom = max(1, min(SMALLEST, side) // larger)
        enlarged = self.zoom * min(1.0, side / (self.zoom * larger))
        high, wide = (max(1, round(pixels * enlarged)) for pixels in data.image_size)
        self.picture_size = wide, high
        names = [_wrapped(_words(d.name), SIZE, NAME_WIDTH) for d in shown]
        widest = max((_length(line, SIZE) for lines in names for line in lines), default=0)
        self.left = MARGIN + math.ceil(widest) + 10
        self.step = count * (self.picture_size[0] + GAP) - GAP + CLASS_GAP
        bands = math.ceil(len(classes) / max(1, WIDTH // self.step))
        columns = math.ceil(len(classes) / bands)
        self.width = max(self.left + columns * self.step - CLASS_GAP + MARGIN, 380)
        self.height = MARGIN
        for start in range(0, len(classes), columns):
            band = classes[start : start + columns]
            self.heads(band)
            for domain, lines in zip(shown, names, strict=True):
                middle = self.height + self.picture_size[1] / 2
                self.text(lines, self.left - 10, middle, anchor="rm")
                self.row(domain, band)
                self.height += self.picture_size[1] + GAP
            self.height += BAND_GAP
        self.foot(classes)

    def text(
        self,
        lines: Sequence[str],
        x: float,
        middle: float,
        *,
        size: int = SIZE,
        anchor: str = "mm",
        colour: str = INK,
    ) -> None:
        """Lines below each other, centred on the height `middle`; anchor: as Pillow names them."""
        first = middle - (len(lines) - 1) * LINE * size / 2
        for i, line in enumerate(lines):
            self.texts.append((x, first + i * LINE * size, line, size, anchor, colour))

    def heads(self, band: list[int]) -> None:
        """The classes' names over their columns, standing on the first row."""
        names = [_wrapped(_words(self.data.classes[c]), SIZE, self.step - 4) for c in band]
        self.height += math.ceil(max(map(len, names)) * LINE * SIZE)
        for i, lines in enumerate(names):
            centre = self.left + i * self.step + (self.step - CLASS_GAP) / 2
            self.text(lines, centre, self.height - len(lines) * LINE * SIZE / 2)
        self.height += 4

    def row(self, domain: Domain, band: list[int]) -> None:
        """The examples of one domain; a dash where it has none of a class."""
        noise = np.random.default_rng([SEED, self.data.names.index(domain.name)])
        method = Image.Resampling.NEAREST if self.zoom > 1 else Image.Resampling.LANCZOS
        for i, label in enumerate(band):
            x = self.left + i * self.step
            targets = domain.train.targets
            are_his = targets[:, label] > 0 if domain.train.are_numbers else targets == label
            places = np.flatnonzero(are_his)
            choice = np.random.default_rng([SEED, label]).permutation(len(places))
            for j, place in enumerate(places[choice[: self.count]]):
                seen = Image.fromarray(domain.train.as_seen(int(place), noise))
                at = x + j * (self.picture_size[0] + GAP)
                self.pictures.append((at, self.height, seen.resize(self.picture_size, method)))
            if not len(places):
                centre = x + (self.step - CLASS_GAP) / 2
                self.text("–", centre, self.height + self.picture_size[1] / 2, colour=GRAY)

    def foot(self, classes: list[int]) -> None:
        """Where the shown images come from, as their licences ask, and what is not shown."""
        for remark in self.remarks(classes):
            for line in _wrapped(remark, FOOT_SIZE, self.width - 2 * MARGIN, most=4):
                self.text([line], MARGIN, self.height, size=FOOT_SIZE, anchor="lm", colour=GRAY)
                self.height += math.ceil(LINE * FOOT_SIZE)
        self.height += MARGIN - FOOT_SIZE // 2

    def remarks(self, classes: list[int]) -> Iterator[str]:
        origins: dict[str, list[str]] = {}
        for domain in self.shown:
            origin = "; ".join(filter(None, (domain.source, domain.licence)))
            origins.setdefault(origin, []).append(domain.name)
        for origin, names in origins.items():
            if origin:
                yield f"{', '.join(names)}: {origin}"
        hidden = [d for d in self.data if d not in self.shown]
        if hidden:
            yield "not shown: " + ", ".join(
                f"{d.name} ({d.licence or 'no licence known'})" for d in hidden
            )
        if any(in_one_font(line)[0] != line for _, _, line, *_ in self.texts):
            yield NOTE
        if len(classes) < len(self.data.classes):
            yield f"{len(classes)} of {len(self.data.classes)} classes"

    def paint(self, stream: IO[bytes], form: str) -> None:
        scale = FORMS[form]
        paper = Image.new("RGB", (scale * self.width, scale * self.height), "white")
        for left, top, picture in self.pictures:
            size = (scale * picture.width, scale * picture.height)
            paper.paste(picture.resize(size, Image.Resampling.NEAREST), (scale * left, scale * top))
        pen = ImageDraw.Draw(paper)
        for x, y, text, letters, anchor, colour in self.texts:
            shown, font = in_one_font(text)
            place = (scale * x, scale * y)
            pen.text(place, shown, fill=colour, font=_font(scale * letters, font), anchor=anchor)
        paper.save(stream, form, resolution=96 * scale, quality=95)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _wrapped(text: str, size: int, room: float, most: int = 3) -> list[str]:
    """The text in at most `most` lines of about `room` pixels; … where something is cut."""
    letters = room / (LETTER * size) * len(text) / max(1, width(text))
    return textwrap.wrap(text, max(2, int(letters)), max_lines=most, placeholder="…") or [""]


def _length(text: str, size: int) -> float:
    """Pixels that a text takes."""
    shown, font = in_one_font(text)
    return _font(size, font).getlength(shown)


@cache
def _font(size: int, path: str | None) -> ImageFont.FreeTypeFont:
    """None: matplotlib's own font, which knows most alphabets."""
    import matplotlib  # noqa: PLC0415 - the rest of it is not loaded

    own = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(path or str(own), size)
