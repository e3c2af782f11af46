"""A sheet of examples: a row for every domain, a column for every class, as the model sees them.

With few classes there are several examples of each; with many, the columns go on below, so that
the sheet stays about as wide as a page. Sources and licences stand at its foot.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
from PIL import Image

from robustmd.domains.domain import Domain, DomainSet
from robustmd.domains.painting import (
    GRAY,
    LINE,
    Picture,
    Sheet,
    Text,
    fitting_size,
    paint_pdf,
    paint_png,
    text_width,
    wrapped,
)
from robustmd.fonts import NOTE, in_one_font

FORMS = {"png": paint_png, "pdf": paint_pdf}
SMALLEST, LARGEST = 64, 96  # sides of a picture on the sheet, in pixels
WIDTH = 1000  # that the columns may take
GAP, CLASS_GAP, BAND_GAP, MARGIN = 3, 8, 16, 14
NAME_WIDTH = 150
FEW = 10  # columns that few classes are brought to
SIZES = (14, 13, 12, 11, 10, 9)  # of letters, in pixels
FOOT = 10
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

    stream: where the picture goes; form: of `FORMS`
    only: domains to show; None: all. What is not shown is named at the foot.
    most: how many pictures at most, by leaving classes out evenly, one always being left
    side: pixels that larger images are reduced to; smaller ones are enlarged by whole factors
    """
    shown = [d for d in data if only is None or d.name in only]
    classes = list(range(len(data.classes)))
    if most is not None and len(classes) * len(shown) > most:
        keep = max(1, most // max(1, len(shown)))
        classes = [len(classes) * i // keep for i in range(keep)]
    count = max(1, FEW // len(classes))
    if most is not None:
        count = max(1, min(count, most // max(1, len(classes) * len(shown))))
    FORMS[form](_Layout(data, shown, classes, count, side).sheet(), stream)


def evenly(names: Sequence[str], most: int) -> list[str]:
    """All names, or `most` ≥ 2 of more, from the first to the last."""
    if len(names) <= most:
        return list(names)
    return [names[round(i * (len(names) - 1) / (most - 1))] for i in range(most)]


@dataclass
class _Layout:
    """Where everything goes. classes: indices of those shown; count: examples of each."""

    data: DomainSet
    shown: list[Domain]
    classes: list[int]
    count: int
    side: int

    def sheet(self) -> Sheet:
        names = {d.name: d.name.replace("_", " ") for d in self.shown}
        name_size = fitting_size(names.values(), NAME_WIDTH, SIZES)
        lines = {n: wrapped(text, name_size, NAME_WIDTH) for n, text in names.items()}
        widest = max((text_width(x, name_size) for ls in lines.values() for x in ls), default=0)
        left = MARGIN + math.ceil(widest) + 10
        step = self.count * (self.width + GAP) - GAP + CLASS_GAP
        bands = math.ceil(len(self.classes) / max(1, WIDTH // step))
        columns = math.ceil(len(self.classes) / bands)
        sheet = Sheet(max(left + columns * step - CLASS_GAP + MARGIN, 380), MARGIN)
        for start in range(0, len(self.classes), columns):
            band = self.classes[start : start + columns]
            self.head(sheet, band, left, step)
            for domain in self.shown:
                middle = sheet.height + self.height / 2
                for text, y in _stacked(lines[domain.name], middle, name_size):
                    sheet.texts.append(Text(left - 10, y, text, name_size, "right"))
                self.row(sheet, domain, band, left, step)
                sheet.height += self.height + GAP
            sheet.height += BAND_GAP
        self.foot(sheet)
        return sheet

    def head(self, sheet: Sheet, band: list[int], left: int, step: int) -> None:
        """The classes' names over their columns."""
        width = step - 4
        texts = [self.data.classes[c].replace("_", " ") for c in self.classes]
        size = fitting_size(texts, width, SIZES)
        lines = [wrapped(self.data.classes[c].replace("_", " "), size, width) for c in band]
        height = max(map(len, lines)) * LINE * size
        for i, texts in enumerate(lines):
            centre = left + i * step + (step - CLASS_GAP) / 2
            middle = sheet.height + height - len(texts) * LINE * size / 2  # they stand on the row
            for text, y in _stacked(texts, middle, size):
                sheet.texts.append(Text(centre, y, text, size, "centre"))
        sheet.height += math.ceil(height) + 4

    def row(self, sheet: Sheet, domain: Domain, band: list[int], left: int, step: int) -> None:
        """The examples of one domain; a dash where it has none of a class."""
        targets = domain.train.targets
        noise = np.random.default_rng([SEED, self.data.names.index(domain.name)])
        for i, label in enumerate(band):
            x, y = left + i * step, sheet.height
            places = np.flatnonzero(targets == label)
            choice = np.random.default_rng([SEED, label]).permutation(len(places))
            for j, place in enumerate(places[choice[: self.count]]):
                pixels, zoom = self.scaled(domain.train.as_seen(int(place), noise))
                sheet.pictures.append(Picture(x + j * (self.width + GAP), y, pixels, zoom))
            if not len(places):
                centre = x + (step - CLASS_GAP) / 2
                sheet.texts.append(Text(centre, y + self.height / 2, "–", 14, "centre", GRAY))

    def foot(self, sheet: Sheet) -> None:
        """Where the shown images come from, as their licences ask, and what is not shown."""
        for line in self.remarks():
            for text in wrapped(line, FOOT, sheet.width - 2 * MARGIN, most=4):
                sheet.texts.append(Text(MARGIN, sheet.height, text, FOOT, colour=GRAY))
                sheet.height += math.ceil(LINE * FOOT)
        sheet.height += MARGIN - FOOT // 2

    def remarks(self) -> Iterator[str]:
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
        named = [d.name for d in self.shown] + [self.data.classes[c] for c in self.classes]
        if any(in_one_font(name)[0] != name for name in named):
            yield NOTE
        if len(self.classes) < len(self.data.classes):
            yield f"{len(self.classes)} of {len(self.data.classes)} classes"

    # --- sizes -------------------------------------------------------------------------------

    @property
    def zoom(self) -> int:
        return max(1, SMALLEST // max(self.data.image_size))

    @property
    def height(self) -> int:
        return self.on_sheet()[0]

    @property
    def width(self) -> int:
        return self.on_sheet()[1]

    def on_sheet(self) -> tuple[int, int]:
        """(height, width) of a picture on the sheet."""
        height, width = (n * self.zoom for n in self.data.image_size)
        shrink = min(1.0, self.side / max(height, width))
        return max(1, round(height * shrink)), max(1, round(width * shrink))

    def scaled(self, image: np.ndarray) -> tuple[np.ndarray, int]:
        """The image reduced, or as it is with the factor to enlarge it by."""
        if image.shape[:2] == self.on_sheet() or self.zoom > 1:
            return image, self.zoom
        small = Image.fromarray(image).resize((self.width, self.height), Image.Resampling.LANCZOS)
        return np.asarray(small), 1


def _stacked(lines: list[str], middle: float, size: int) -> Iterator[tuple[str, float]]:
    """Lines with the height of each one's middle, the whole being centred on `middle`."""
    first = middle - (len(lines) - 1) * LINE * size / 2
    for i, line in enumerate(lines):
        yield line, first + i * LINE * size
