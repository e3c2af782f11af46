"""`data=digits_mini` and `data=digits_typed`: handwritten against drawn digits, with the package.

*handwritten*: the 1,797 digits of the UCI set "Optical Recognition of Handwritten Digits" (see
uci_digits.md), 8×8 with 17 gray levels, enlarged to 28×28 by Pillow's bicubic resize and padded
with black to 32×32. A seeded shuffle makes 1,400 of them the training and 397 the test split: the
set's own order follows its writers, whose numbers are not published, and a cut through it
would measure new writers for this domain alone.

*printed*: 6,000 + 1,000 digits as on house numbers, every digit equally often, drawn from the fonts
that matplotlib brings along. One image: a 64×64 canvas of one colour; a digit in another colour (at
least 35 of 255 apart on average over the channels), in one of 15 fonts at size 36 to 60, its centre
up to 8 pixels off the middle; a neighbour digit on either side with probability 0.7 each, as in a
row of figures; turned by up to 15 degrees; reduced to 32×32; a lighting slope N(0, 20) in both
directions (the change from the middle to the edge) and pixel noise of σ between 2 and 25.

*typed*: 3,000 + 600 digits, drawn as *printed* in a `Style` that is easier to read: the ink is
always lighter than the background, as in the handwritten ones. Where ink may be darker or lighter,
a network's loss stays where it began for a while before it learns: here it does not.

The same seed draws the same digits, pixel for pixel, for one version of Pillow and matplotlib;
other versions may rasterise or ship the fonts differently, which the data's fingerprint shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robustmd.domains.digits import CLASSES, SIDE
from robustmd.domains.domain_set import Domain, DomainSet
from robustmd.domains.store import Block, Notes, open_store
from robustmd.registry import Data, DataFacts, data

SEED = 2019  # fixed: it belongs to the data set, not to the run
SHUFFLE, DRAWN_STREAMS = 0, {"train": 1, "test": 2}  # independent streams under that seed
HANDWRITTEN_TRAIN = 1_400
UCI_FILE = Path(__file__).with_name("uci_digits.npz")
SOURCES = (  # of the handwritten and the drawn digits
    "UCI Optical Recognition of Handwritten Digits (Alpaydin, Kaynak), enlarged",
    "drawn from matplotlib's fonts: DejaVu, STIX, Computer Modern",
)
LICENCES = ("CC BY 4.0", "the fonts' licences, which leave pictures free")
FONT_STYLES = {
    "DejaVuSans": ("", "-Bold", "-Oblique"),
    "DejaVuSansMono": ("", "-Bold", "-Oblique"),
    "DejaVuSerif": ("", "-Bold", "-Italic"),
    "STIXGeneral": ("", "Bol", "Italic"),
    "cm": ("r10", "b10", "ss10"),
}
FONT_NAMES = [family + style for family, styles in FONT_STYLES.items() for style in styles]


@dataclass(frozen=True)
class Style:
    """How a digit is drawn from a font; it has the defaults of *printed*.

    neighbours: probability of another digit on either side, each for itself
    shift: of the digit's centre off the middle, at most, in pixels of the 64×64 canvas
    turn: degrees, at most, to either side
    contrast: of 255, of ink and background on average over the channels, at least
    lighter: whether the ink is the lighter of the two, and not one or the other by chance
    noise: the least and the largest σ of a picture's pixels, on the 0..255 scale
    """

    neighbours: float = 0.7
    shift: float = 8.0
    turn: float = 15.0
    contrast: float = 35.0
    lighter: bool = False
    noise: tuple[float, float] = (2.0, 25.0)


class Shipped(Data):
    """The handwritten digits and a domain of `drawn` ones.

    counts: of its training and its test split, each a multiple of 10
    """

    drawn: ClassVar[str]
    counts: ClassVar[tuple[int, int]]
    style: ClassVar[Style]

    def names(self) -> tuple[str, ...]:
        return ("handwritten", self.drawn)

    def load(self, facts: DataFacts) -> DomainSet:
        """Made on first use and kept in paths.cache. Raises UserError if that cannot be written."""
        settings = [self.name, self.counts, SEED]
        cache = facts.folder("cache")
        store = open_store(cache, self.name, SIDE, settings, "", self._build, facts.say)
        domains = []
        for name, source, licence in zip(self.names(), SOURCES, LICENCES, strict=True):
            splits, sums = store.splits(name, f"{name}_")
            domains.append(Domain(name, splits, source, licence, sums))
        return DomainSet.of(self.name, domains, CLASSES)

    def _build(self, notes: Notes) -> Iterator[Block]:
        with np.load(UCI_FILE, allow_pickle=False) as file:
            images, labels = file["images"], file["labels"]
        order = _stream(SHUFFLE).permutation(len(images))
        for split, rows in zip(DRAWN_STREAMS, np.split(order, [HANDWRITTEN_TRAIN]), strict=True):
            yield f"handwritten_{split}", labels[rows], map(_enlarged, images[rows])
        for (split, stream), count in zip(DRAWN_STREAMS.items(), self.counts, strict=True):
            rng = _stream(stream)
            digits = rng.permutation(np.arange(count) % len(CLASSES))
            drawn = map(partial(house_number, rng=rng, style=self.style), digits.tolist())
            yield f"{self.drawn}_{split}", digits, drawn


@data("digits_mini", order=0)
class DigitsMini(Shipped):
    """Handwritten against printed digits; ships with the package."""

    drawn = "printed"
    counts = (6_000, 1_000)
    style = Style()


@data("digits_typed", order=0.5)
class DigitsTyped(Shipped):
    """Handwritten against typed digits; ships with the package."""

    drawn = "typed"
    counts = (3_000, 600)
    style = Style(neighbours=0.4, shift=4.0, contrast=50.0, lighter=True, noise=(2.0, 20.0))


def _stream(number: int) -> np.random.Generator:
    """One of the data set's independent counter-based random streams."""
    return np.random.Generator(np.random.Philox(key=[SEED, number]))


def _enlarged(image: np.ndarray) -> np.ndarray:
    """uint8 [8, 8] with values 0…16 → uint8 [32, 32, 3], black margin of 2."""
    gray = ((image.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    large = Image.fromarray(gray).resize((28, 28), Image.Resampling.BICUBIC)
    padded = np.pad(np.asarray(large), 2)
    return np.repeat(padded[..., None], 3, axis=2)


def house_number(digit: int, rng: np.random.Generator, style: Style) -> np.ndarray:
    """The digit with its neighbours, turned, reduced, lit and noisy: uint8 [32, 32, 3]."""
    background, ink = _colours(rng, style)
    font = _font(FONT_NAMES[rng.integers(len(FONT_NAMES))], int(rng.integers(36, 61)))
    canvas = Image.new("RGB", (64, 64), background)
    pen = ImageDraw.Draw(canvas)
    text = str(digit)
    box = font.getbbox(text)
    centre = 32 + rng.uniform(-style.shift, style.shift, size=2)
    # Pillow places a text by the corner of its line, so the digit's own box is put on the centre.
    left = round(centre[0] - (box[0] + box[2]) / 2)
    top = round(centre[1] - (box[1] + box[3]) / 2)
    pen.text((left, top), text, fill=ink, font=font)
    if rng.random() < style.neighbours:
        before = str(rng.integers(10))
        pen.text((left - round(font.getlength(before)), top), before, fill=ink, font=font)
    if rng.random() < style.neighbours:
        after = str(rng.integers(10))
        pen.text((left + round(font.getlength(text)), top), after, fill=ink, font=font)
    turned = canvas.rotate(
        rng.uniform(-style.turn, style.turn), Image.Resampling.BILINEAR, fillcolor=background
    )
    return _disturbed(turned.resize((SIDE, SIDE), Image.Resampling.BOX), rng, style.noise)


def _colours(rng: np.random.Generator, style: Style) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Background and ink, redrawn until they can be told apart."""
    while True:
        background, ink = rng.integers(0, 256, size=(2, 3))
        apart = ink - background if style.lighter else np.abs(ink - background)
        if apart.mean() >= style.contrast:
            return tuple(map(int, background)), tuple(map(int, ink))


def _disturbed(
    picture: Image.Image, rng: np.random.Generator, noise: tuple[float, float]
) -> np.ndarray:
    """With the lighting slope and the pixel noise: uint8 [32, 32, 3]."""
    image = np.asarray(picture)
    down, across = rng.normal(0.0, 20.0, size=2)
    position = np.linspace(-1.0, 1.0, SIDE)
    light = down * position[:, None] + across * position[None, :]
    grain = rng.normal(0.0, rng.uniform(*noise), size=image.shape)
    return np.clip(np.rint(image + light[:, :, None] + grain), 0, 255).astype(np.uint8)


@cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib  # noqa: PLC0415 - only where digits are drawn

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
    # The basic layout is the one that every build of Pillow has.
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
