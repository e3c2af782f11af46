"""One example as the model sees it, without torch: for pictures of the data.

`training.augment` does the same to batches, on the device. Here a crop is the central one, and the
noise is a draw of its own.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from robustmd.domains.domain import Examples
from robustmd.domains.views import matrix_of


def seen(examples: Examples, position: int, rng: np.random.Generator) -> np.ndarray:
    """The example at `position` (0..n·V−1) after variant, crop and noise: uint8 [h, w, 3]."""
    views = examples.views
    stored, variant = divmod(position, len(views.variants))
    row = stored if examples.rows is None else examples.rows[stored]
    image = _turned(examples.images[row], views.variants[variant])
    height, width = examples.image_size
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    image = image[top : top + height, left : left + width]
    if views.sigma:
        noisy = image + rng.normal(0.0, views.sigma, image.shape)
        image = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return image


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
