"""One split of one domain: stored images with their labels, and what is seen of them.

Of each stored image variants (flips and turns), a crop and noise are seen, in this order. They are
only described here, so that reading data needs no torch: training/pixels.py carries them out on
the device. Nothing is ever stored more than once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

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


@dataclass(frozen=True, eq=False)
class Examples:
    """One split of one domain: images with their labels.

    images: uint8 [N, H, W, 3], C-contiguous, usually a read-only memory map; features [N, …] are
            float32 [N, 1, …, 1], tokens int64 of that shape, both seen as they are
    labels: int64 [N], the classes, or float32 [N, L], L numbers an image; aligned with images
    rows:   int64 [n], the rows of images that belong to this split (None: all N, in order)
    files:  [N], the file of each stored image, where it has one of its own
    views:  what is seen of each stored image. With V variants the split has n·V examples: example p
            is stored image p // V (of rows) in variant p % V

    `Domain` checks the shapes and types, since it can name the domain and the split.
    """

    images: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None
    views: Views = Views()
    files: Sequence[str] | None = None

    def __len__(self) -> int:
        """Number n·V of examples in this split."""
        return self.stored * len(self.views.variants)

    @property
    def stored(self) -> int:
        """Number n of stored images in this split; n = len(self) but for variants."""
        return len(self.labels) if self.rows is None else len(self.rows)

    @property
    def stored_rows(self) -> np.ndarray:
        """The rows of the stored images in this split: int64 [n]."""
        return np.arange(len(self.labels), dtype=np.int64) if self.rows is None else self.rows

    @property
    def targets(self) -> np.ndarray:
        """The labels of this split's examples, in its order: int64 [n·V] or float32 [n·V, L]."""
        labels = self.labels if self.rows is None else self.labels[self.rows]
        variants = len(self.views.variants)
        return labels if variants == 1 else labels.repeat(variants, axis=0)

    @property
    def are_numbers(self) -> bool:
        """Whether the labels are numbers to be met, and no classes."""
        return self.labels.ndim == 2

    @property
    def are_features(self) -> bool:
        """Whether the model takes them as they are: features or tokens, and no images."""
        images = self.images
        is_type = images.dtype in (np.float32, np.int64)
        return is_type and images.ndim > 3 and images.shape[1] == images.shape[-1] == 1

    @property
    def are_tokens(self) -> bool:
        """Whether they are features that count: int64."""
        return self.are_features and self.images.dtype == np.int64

    @property
    def image_size(self) -> tuple[int, ...]:
        """(H, W) of what is seen of an image; (1, …) of features [N, …]."""
        crop = self.views.crop
        return self.images.shape[1:-1] if crop is None else (crop, crop)

    @property
    def size_in_words(self) -> str:
        """32×32 of images, else as "features [12, 8]" or "tokens [12]"."""
        if not self.are_features:
            return "×".join(map(str, self.image_size))
        kind = "tokens" if self.are_tokens else "features"
        return f"{kind} {list(self.image_size[1:])}"

    def subset(self, positions: np.ndarray) -> Examples:
        """The stored images at `positions` (int [m]) in all their variants, sharing `images`.

        Raises IndexError outside 0..n−1.
        """
        positions = np.asarray(positions, dtype=np.int64)
        if len(positions) and (positions.min() < 0 or positions.max() >= self.stored):
            raise IndexError(f"positions must lie in 0..{self.stored - 1}")
        return replace(self, rows=self.stored_rows[positions])

    def as_seen(self, position: int, rng: np.random.Generator) -> np.ndarray:
        """The example at `position` (0..n·V−1) after variant, crop and noise: uint8 [h, w, 3].

        For pictures of the data, without torch: batches are made so on the device. Here a crop is
        the central one, and the noise is a draw of its own.
        """
        stored, variant = divmod(position, len(self.views.variants))
        image = _turned(self.images[self.stored_rows[stored]], self.views.variants[variant])
        height, width = self.image_size
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        image = image[top : top + height, left : left + width]
        if self.views.sigma:
            noisy = image + rng.normal(0.0, self.views.sigma, image.shape)
            image = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
        return image

    def fault(self) -> str | None:
        """What is wrong with the arrays or views, in words, or None."""
        images, labels, rows = self.images, self.labels, self.rows
        fault = None
        if self.are_features and self.views != Views():
            fault = "features are seen as they are, without crop, turn or noise"
        elif not self.are_features and (
            images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3
        ):
            fault = f"images are {images.dtype} {list(images.shape)}, not uint8 [N, H, W, 3]"
        elif not images.flags.c_contiguous:
            fault = "images are not C-contiguous; pass numpy.ascontiguousarray(images)"
        elif labels.dtype != (np.float32 if self.are_numbers else np.int64) or (
            labels.shape[:1] != images.shape[:1]
        ):
            wanted = f"int64 [{len(images)}] or float32 [{len(images)}, L]"
            fault = f"labels are {labels.dtype} {list(labels.shape)}, not {wanted}"
        elif self.are_numbers and not np.isfinite(labels).all():
            fault = "labels are not all finite"
        elif rows is not None and (rows.dtype != np.int64 or rows.ndim != 1):
            fault = f"rows are {rows.dtype} {list(rows.shape)}, not int64 [n]"
        elif not self.stored:
            fault = "it has no examples"
        elif rows is not None and (rows.min() < 0 or rows.max() >= len(images)):
            fault = f"rows run from {rows.min()} to {rows.max()}; there are {len(images)} images"
        return fault or self.views.fault(*images.shape[1:3])


def _turned(image: np.ndarray, variant: str) -> np.ndarray:
    """uint8 [H, W, 3] turned or flipped about its centre, with black where nothing was."""
    if variant == "identity":
        return image
    a, b, c, d = matrix_of(variant)
    x, y = image.shape[1] / 2, image.shape[0] / 2
    affine = (a, b, x - a * x - b * y, c, d, y - c * x - d * y)
    picture = Image.fromarray(image)
    turned = picture.transform(
        picture.size, Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR
    )
    return np.asarray(turned)


# --- seeded draws: who is held out, and a test split for a domain that has none -------------------


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on the seed and on whose they are alone."""
    entropy = [seed, *hashlib.sha256(name.encode()).digest()[:8]]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def held_out(total: int, share: float) -> int:
    """How many of `total` ≥ 2: round(share·total), at least 1, leaving at least 1."""
    return min(max(1, round(share * total)), total - 1)


def seeded_split(
    labels: np.ndarray, share: float, seed: int, domain: str
) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): sorted positions, int64, of the examples with these labels (int [n], n ≥ 2).

    The test split has `held_out` examples, of every class the same share but for rounding: the
    examples lie in the order of their classes, within a class in a random one, and every
    (1/share)-th is taken from a random start. It depends on the labels, the seed and the domain's
    name alone, so that all runs share it.
    """
    total = len(labels)
    count = held_out(total, share)
    rng = stream(seed, domain)
    by_class = np.lexsort((rng.random(total), labels))
    spaced = np.floor((np.arange(count) + rng.random()) * total / count).astype(np.int64)
    chosen = np.zeros(total, dtype=bool)
    chosen[by_class[spaced]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
