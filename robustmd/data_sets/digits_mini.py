"""`data=digits_mini`: handwritten against printed digits; ships with the package.

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

The same seed draws the same digits, pixel for pixel, for one version of Pillow and matplotlib;
other versions may rasterise or ship the fonts differently, which the data's fingerprint shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import fingerprint
from robustmd.domains.domain import CC_BY_4, FONTS, Domain, DomainSet, Examples
from robustmd.domains.store import Recipe, open_store
from robustmd.registry import DataFacts, Settings, data

CLASSES = tuple(str(digit) for digit in range(10))
SEED = 2019  # fixed: it belongs to the data set, not to the run
SHUFFLE, TRAIN, TEST = 0, 1, 2  # independent streams under that seed
HANDWRITTEN_TRAIN = 1_400
PRINTED = {"train": (TRAIN, 6_000), "test": (TEST, 1_000)}
SIZE = 32
UCI_FILE = Path(__file__).with_name("uci_digits.npz")
SOURCES = {
    "handwritten": (
        "UCI Optical Recognition of Handwritten Digits (Alpaydin, Kaynak), enlarged",
        CC_BY_4,
    ),
    "printed": ("drawn from matplotlib's fonts: DejaVu, STIX, Computer Modern", FONTS),
}
FONT_STYLES = {
    "DejaVuSans": ("", "-Bold", "-Oblique"),
    "DejaVuSansMono": ("", "-Bold", "-Oblique"),
    "DejaVuSerif": ("", "-Bold", "-Italic"),
    "STIXGeneral": ("", "Bol", "Italic"),
    "cm": ("r10", "b10", "ss10"),
}
FONT_NAMES = [family + style for family, styles in FONT_STYLES.items() for style in styles]


@data("digits_mini", order=0)
class DigitsMini(Settings):
    """Handwritten against printed digits; ships with the package."""

    def names(self) -> tuple[str, ...]:
        return tuple(SOURCES)

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        return f"{CC_BY_4}; {FONTS}", 0, {}

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "handwritten" (1,400 + 397) and "printed" (6,000 + 1,000), in this order.

        Made within seconds on first use and kept in paths.cache; no network, no file beside the
        package. Raises UserError if the cache cannot be written.
        """
        recipe = Recipe("digits_mini", 1, {"seed": SEED}, _build)
        store = open_store(facts.folder("cache"), recipe, facts.say)
        domains, sums = [], {}
        for name, (source, licence) in SOURCES.items():
            train, test = (
                Examples(
                    store.arrays[f"{name}_{split}_images"], store.arrays[f"{name}_{split}_labels"]
                )
                for split in ("train", "test")
            )
            domains.append(Domain(name, train, test, None, source, licence, "made here"))
            sums[name] = {a: c for a, c in store.checksums.items() if a.startswith(f"{name}_")}
        sha256 = fingerprint("digits_mini", CLASSES, sums)
        return DomainSet("digits_mini", tuple(domains), CLASSES, sha256)


def _build(writer: ArrayWriter) -> None:
    with np.load(UCI_FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    order = _stream(SHUFFLE).permutation(len(images))
    splits = {"train": order[:HANDWRITTEN_TRAIN], "test": order[HANDWRITTEN_TRAIN:]}
    for split, rows in splits.items():
        _add(writer, f"handwritten_{split}", labels[rows], map(_enlarged, images[rows]))
    for split, (stream, count) in PRINTED.items():
        rng = _stream(stream)
        digits = rng.permutation(np.arange(count) % len(CLASSES))
        drawn = (house_number(int(digit), rng) for digit in digits)
        _add(writer, f"printed_{split}", digits, drawn)


def _stream(number: int) -> np.random.Generator:
    """One of the data set's independent counter-based random streams."""
    return np.random.Generator(np.random.Philox(key=[SEED, number]))


def _enlarged(image: np.ndarray) -> np.ndarray:
    """uint8 [8, 8] with values 0…16 → uint8 [32, 32, 3], black margin of 2."""
    gray = ((image.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    large = Image.fromarray(gray).resize((28, 28), Image.Resampling.BICUBIC)
    padded = np.pad(np.asarray(large), 2)
    return np.repeat(padded[..., None], 3, axis=2)


def _add(writer: ArrayWriter, name: str, labels: np.ndarray, images: Iterable[np.ndarray]) -> None:
    """Write images (uint8 [32, 32, 3] each, made one by one) and labels."""
    shape = (len(labels), SIZE, SIZE, 3)
    blocks = (image[None] for image in images)
    writer.add(f"{name}_images", "uint8", shape, blocks)
    writer.add(f"{name}_labels", "int64", labels.shape, [labels.astype(np.int64)])


def house_number(digit: int, rng: np.random.Generator) -> np.ndarray:
    """The digit with its neighbours, turned, reduced, lit and noisy: uint8 [32, 32, 3]."""
    background, ink = _colours(rng)
    font = _font(FONT_NAMES[rng.integers(len(FONT_NAMES))], int(rng.integers(36, 61)))
    canvas = Image.new("RGB", (64, 64), background)
    pen = ImageDraw.Draw(canvas)
    text = str(digit)
    box = font.getbbox(text)
    centre = 32 + rng.uniform(-8.0, 8.0, size=2)
    # Pillow places a text by the corner of its line, so the digit's own box is put on the centre.
    left = round(centre[0] - (box[0] + box[2]) / 2)
    top = round(centre[1] - (box[1] + box[3]) / 2)
    pen.text((left, top), text, fill=ink, font=font)
    if rng.random() < 0.7:
        before = str(rng.integers(10))
        pen.text((left - round(font.getlength(before)), top), before, fill=ink, font=font)
    if rng.random() < 0.7:
        after = str(rng.integers(10))
        pen.text((left + round(font.getlength(text)), top), after, fill=ink, font=font)
    turned = canvas.rotate(
        rng.uniform(-15.0, 15.0), Image.Resampling.BILINEAR, fillcolor=background
    )
    return _disturbed(np.asarray(turned.resize((SIZE, SIZE), Image.Resampling.BOX)), rng)


def _colours(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Background and ink, redrawn until they can be told apart."""
    while True:
        background, ink = rng.integers(0, 256, size=(2, 3))
        if np.abs(background - ink).mean() >= 35.0:
            return tuple(map(int, background)), tuple(map(int, ink))


def _disturbed(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """With the lighting slope and the pixel noise: uint8 [32, 32, 3]."""
    down, across = rng.normal(0.0, 20.0, size=2)
    position = np.linspace(-1.0, 1.0, SIZE)
    light = down * position[:, None] + across * position[None, :]
    noise = rng.normal(0.0, rng.uniform(2.0, 25.0), size=image.shape)
    return np.clip(np.rint(image + light[:, :, None] + noise), 0, 255).astype(np.uint8)


@cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib  # noqa: PLC0415 - only where digits are drawn

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
    # The basic layout is the one that every build of Pillow has.
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
