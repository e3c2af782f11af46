"""One split of one domain: stored images with their labels, and what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from robustmd.domains.views import Views, matrix_of

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Examples:
    """One split of one domain: images with their labels.

    images: uint8 [N, H, W, 3], C-contiguous, usually a read-only memory map
    labels: int64 [N], aligned with images
    rows:   int64 [n], the rows of images that belong to this split (None: all N, in order)
    views:  what is seen of each stored image. With V variants the split has n·V examples: example p
            is stored image p // V (of rows) in variant p % V

    `Domain` checks the shapes and types, since it can name the domain and the split.
    """

    images: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None
    views: Views = Views()

    def __len__(self) -> int:
        """Number n·V of examples in this split."""
        return self.stored * len(self.views.variants)

    @property
    def stored(self) -> int:
        """Number n of stored images in this split; n = len(self) but for variants."""
        return len(self.labels) if self.rows is None else len(self.rows)

    @property
    def targets(self) -> np.ndarray:
        """The labels of this split's examples, in its order: int64 [n·V]."""
        labels = self.labels if self.rows is None else self.labels[self.rows]
        variants = len(self.views.variants)
        return labels if variants == 1 else labels.repeat(variants)

    @property
    def image_size(self) -> tuple[int, int]:
        """(H, W) of what is seen of an image."""
        height, width = self.images.shape[1:3]
        return (height, width) if self.views.crop is None else (self.views.crop, self.views.crop)

    def subset(self, positions: np.ndarray) -> Examples:
        """The stored images at `positions` (int [m]) in all their variants, sharing `images`.

        Raises IndexError outside 0..n−1.
        """
        positions = np.asarray(positions, dtype=np.int64)
        if len(positions) and (positions.min() < 0 or positions.max() >= self.stored):
            raise IndexError(f"positions must lie in 0..{self.stored - 1}")
        rows = positions if self.rows is None else self.rows[positions]
        return replace(self, rows=rows)

    def as_seen(self, position: int, rng: np.random.Generator) -> np.ndarray:
        """The example at `position` (0..n·V−1) after variant, crop and noise: uint8 [h, w, 3].

        For pictures of the data, without torch: batches are made so on the device. Here a crop is
        the central one, and the noise is a draw of its own.
        """
        stored, variant = divmod(position, len(self.views.variants))
        row = stored if self.rows is None else self.rows[stored]
        image = _turned(self.images[row], self.views.variants[variant])
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
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
            fault = f"images are {images.dtype} {list(images.shape)}, not uint8 [N, H, W, 3]"
        elif not images.flags.c_contiguous:
            fault = "images are not C-contiguous; pass numpy.ascontiguousarray(images)"
        elif labels.dtype != np.int64 or labels.shape != images.shape[:1]:
            fault = f"labels are {labels.dtype} {list(labels.shape)}, not int64 [{len(images)}]"
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
