"""How stored images are seen: variants (flips and turns), a crop and noise, in this order.

They are only described here, so that reading data needs no torch; variants.py carries them out on
the device. No image is stored more than once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

SPLITS = ("train", "val", "test")
Matrix = tuple[float, float, float, float]


def _turn(degrees: float) -> Matrix:
    """Counter-clockwise about the centre, with y downwards; to 15 digits, as Pillow has it."""
    c, s = (round(f(math.radians(degrees)), 15) for f in (math.cos, math.sin))
    return (c, -s, s, c)


# The ten that data=pets expands a training set by; `matrix_of` knows every other rotation too.
VARIANTS: Mapping[str, Matrix] = {
    "identity": (1.0, 0.0, 0.0, 1.0),
    "flip_horizontal": (-1.0, 0.0, 0.0, 1.0),
    "flip_vertical": (1.0, 0.0, 0.0, -1.0),
    **{f"rotate_{degrees}": _turn(degrees) for degrees in range(45, 360, 45)},
}


def matrix_of(name: str) -> Matrix:
    """(a, b, c, d) of a variant: one of `VARIANTS`, or `rotate_15`, by any degrees in (0, 360).

    The pixel (x, y) from the centre shows what was at (a·x + b·y, c·x + d·y). Degrees are written
    as `rotation` writes them, so that a rotation has one name. Raises ValueError for another name.
    """
    if name in VARIANTS:
        return VARIANTS[name]
    written = name.removeprefix("rotate_")
    try:
        degrees = float(written)
    except ValueError:
        degrees = math.nan
    if written == name or not 0 < degrees < 360 or written != f"{degrees:g}":
        raise ValueError(
            f"variant {name!r} is unknown; allowed are {', '.join(list(VARIANTS)[:3])} and "
            "rotate_ with degrees above 0 and below 360, in at most six digits, as rotate_22.5"
        )
    return _turn(degrees)


def rotation(degrees: float) -> str:
    """The variant that turns counter-clockwise by `degrees`, finite, which count modulo 360 and to
    six digits: rotation(15) = "rotate_15", rotation(360) = "identity"."""
    written = f"{degrees % 360:g}"
    return "identity" if float(written) in (0, 360) else f"rotate_{written}"


@dataclass(frozen=True)
class Views:
    """What is seen of each stored image of a split. The default: the image, once, as it is.

    variants: names that `matrix_of` knows, distinct, V ≥ 1. Each stored image counts once for
        each: position p of the split is image p // V in variant p % V. Rotations are bilinear with
        black corners, as Pillow's `rotate(angle, resample=BILINEAR)`; right angles and flips move
        pixels exactly.
    crop: side s in pixels, of a random s×s crop in training and the central one in measurement;
        None: the whole image.
    sigma: σ ≥ 0 of the noise N(0, σ²) added to every pixel and channel on the 0..255 scale, then
        rounded and clipped: fresh at each draw in training, fixed for each image in measurement.

    `Domain` checks them, since it can name the domain and the split.
    """

    variants: tuple[str, ...] = ("identity",)
    crop: int | None = None
    sigma: float = 0.0

    def fault(self, height: int, width: int) -> str | None:
        """What is wrong with these views of images of that size, in words, or None."""
        for name in self.variants:
            try:
                matrix_of(name)
            except ValueError as error:
                return str(error)
        turned = [name for name in self.variants if name.startswith("rotate")]
        fault = None
        if not self.variants or len(set(self.variants)) < len(self.variants):
            fault = f"variants {list(self.variants)}: at least one is needed, none twice"
        elif turned and height != width:
            fault = f"images of {height}×{width} cannot take {turned[0]}; make them square"
        elif self.crop is not None and not 1 <= self.crop <= min(height, width):
            fault = f"a crop of {self.crop} does not fit images of {height}×{width}"
        elif not 0 <= self.sigma < math.inf:  # also refuses NaN
            fault = f"noise of σ = {self.sigma}; it must be a finite number ≥ 0"
        return fault

    def in_words(self) -> str:
        """One text for equal views and another for different ones, as a fingerprint needs."""
        return json.dumps([list(self.variants), self.crop, float(self.sigma)])
