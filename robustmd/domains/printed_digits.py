"""Printed digits as on house numbers, drawn from the fonts that matplotlib brings along.

One image: a 64×64 canvas of one colour; a digit in another colour (at least 35 of 255 apart on
average over the channels), in one of 15 fonts at size 36 to 60, its centre up to 8 pixels off the
middle; a neighbour digit on either side with probability 0.7 each, as in a row of figures; turned
by up to 15 degrees; reduced to 32×32; a lighting slope N(0, 20) in both directions (the change
from the middle to the edge) and pixel noise of σ between 2 and 25.

The same seed draws the same digits, pixel for pixel, for one version of Pillow and matplotlib;
other versions may rasterise or ship the fonts differently, which the data's fingerprint shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

CANVAS = 64
SIZE = 32
SIZES = (36, 60)  # of the font, in pixels
SHIFT = 8.0
NEIGHBOUR = 0.7
ROTATION = 15.0  # degrees
COLOUR_DISTANCE = 35.0  # mean over the channels of |ink − background|
LIGHTING = 20.0
NOISE = (2.0, 25.0)

FONTS = (
    "DejaVuSans.ttf",
    "DejaVuSans-Bold.ttf",
    "DejaVuSans-Oblique.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSansMono-Bold.ttf",
    "DejaVuSansMono-Oblique.ttf",
    "DejaVuSerif.ttf",
    "DejaVuSerif-Bold.ttf",
    "DejaVuSerif-Italic.ttf",
    "STIXGeneral.ttf",
    "STIXGeneralBol.ttf",
    "STIXGeneralItalic.ttf",
    "cmr10.ttf",
    "cmb10.ttf",
    "cmss10.ttf",
)


def draw(labels: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield one image for every label: uint8 [32, 32, 3]."""
    for label in labels:
        yield _disturb(_house_number(int(label), rng), rng)


def _house_number(label: int, rng: np.random.Generator) -> np.ndarray:
    """The digit with its neighbours, turned and reduced: uint8 [32, 32, 3]."""
    background, ink = _colours(rng)
    font = _font(FONTS[rng.integers(len(FONTS))], int(rng.integers(SIZES[0], SIZES[1] + 1)))
    canvas = Image.new("RGB", (CANVAS, CANVAS), background)
    pen = ImageDraw.Draw(canvas)
    text = str(label)
    box = font.getbbox(text)
    centre = CANVAS / 2 + rng.uniform(-SHIFT, SHIFT, size=2)
    # Pillow places a text by the corner of its line, so the digit's own box is put on the centre.
    left = round(centre[0] - (box[0] + box[2]) / 2)
    top = round(centre[1] - (box[1] + box[3]) / 2)
    pen.text((left, top), text, fill=ink, font=font)
    if rng.random() < NEIGHBOUR:
        before = str(rng.integers(10))
        pen.text((left - round(font.getlength(before)), top), before, fill=ink, font=font)
    if rng.random() < NEIGHBOUR:
        after = str(rng.integers(10))
        pen.text((left + round(font.getlength(text)), top), after, fill=ink, font=font)
    turned = canvas.rotate(
        rng.uniform(-ROTATION, ROTATION), Image.Resampling.BILINEAR, fillcolor=background
    )
    return np.asarray(turned.resize((SIZE, SIZE), Image.Resampling.BOX))


def _colours(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Background and ink, redrawn until they can be told apart."""
    while True:
        background, ink = rng.integers(0, 256, size=(2, 3))
        if np.abs(background - ink).mean() >= COLOUR_DISTANCE:
            return tuple(map(int, background)), tuple(map(int, ink))


def _disturb(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add the lighting slope and the pixel noise: uint8 [32, 32, 3]."""
    down, across = rng.normal(0.0, LIGHTING, size=2)
    position = np.linspace(-1.0, 1.0, SIZE)
    light = down * position[:, None] + across * position[None, :]
    noise = rng.normal(0.0, rng.uniform(*NOISE), size=image.shape)
    return np.clip(np.rint(image + light[:, :, None] + noise), 0, 255).astype(np.uint8)


@cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib  # noqa: PLC0415  # only where digits are drawn

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name
    # The basic layout is the one that every build of Pillow has.
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
