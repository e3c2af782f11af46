"""What `data.augment` does to training images, a batch at a time and where the model is.

Each takes the images, uint8 [n, 3, H, W], and uniform numbers in [0, 1), float32 [n, numbers],
which come from the run's own streams; and gives images of the same shape, any dtype, in 0..255.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from robustmd.registry import augment

if TYPE_CHECKING:
    from torch import Tensor

AREA, RATIO = 0.7, 4 / 3  # the smallest share of an image, and the most oblong, that is looked at
DEGREES = 15.0
STRENGTH, HUE = 0.3, 0.1  # of colours; the hue in turns of its circle


@augment("standard", numbers=10)
def standard(images: Tensor, chance: Tensor) -> Tensor:
    """A part of the image (area 0.7 to 1, ratio 3/4 to 4/3), mirrored in every second case, turned
    by up to 15°, enlarged to the whole; brightness, contrast and saturation times 0.7 to 1.3, and
    the hue turned by up to a tenth of its circle."""
    return recoloured(replaced(images.float(), chance[:, :6]), chance[:, 6:])


def replaced(images: Tensor, chance: Tensor) -> Tensor:
    """float [n, 3, H, W]: cut, mirrored, turned and enlarged by one bilinear interpolation; beyond
    its edges an image goes on as in a mirror. chance: [n, 6]."""
    import torch  # noqa: PLC0415 - settings are checked without it
    from torch.nn import functional  # noqa: PLC0415

    height, width = images.shape[2:]
    centred = chance * 2 - 1
    area = 1 - (1 - AREA) * chance[:, 0]
    ratio = (centred[:, 1] * math.log(RATIO)).exp()
    across, down = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    right, low = centred[:, 2] * (1 - across), centred[:, 3] * (1 - down)
    side = torch.where(chance[:, 4] < 0.5, -1.0, 1.0)
    angle = centred[:, 5] * math.radians(DEGREES)
    cos, sin = angle.cos(), angle.sin()

    def spread(values: Tensor) -> Tensor:
        return values[:, None, None]

    # By hand and not by affine_grid, whose product a GPU may round to ten bits.
    y = (torch.arange(height, device=images.device) * 2 + 1)[:, None] / height - 1
    x = (torch.arange(width, device=images.device) * 2 + 1)[None, :] / width - 1
    grid_x = spread(across * side * cos) * x - spread(across * sin * height / width) * y
    grid_y = spread(down * side * sin * width / height) * x + spread(down * cos) * y
    grid = torch.stack([grid_x + spread(right), grid_y + spread(low)], dim=3)
    return functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def recoloured(images: Tensor, chance: Tensor) -> Tensor:
    """float [n, 3, H, W]: b·(c·C·x + (1 − c)·x̄), x̄ the mean of the image's numbers and C a pixel's
    turn about the gray axis, its distance from there times s. chance: [n, 4]."""
    import torch  # noqa: PLC0415 - settings are checked without it

    bright, contrast, saturation = (1 + STRENGTH * (chance[:, :3] * 2 - 1)).unbind(1)
    angle = (chance[:, 3] * 2 - 1) * (2 * math.pi * HUE)
    cos, sin = saturation * angle.cos() / 3, saturation * angle.sin() / math.sqrt(3)
    own, next_one, last = 1 / 3 + 2 * cos, 1 / 3 - cos - sin, 1 / 3 - cos + sin
    rows = [[own, next_one, last], [last, own, next_one], [next_one, last, own]]
    turn = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)
    mean = images.mean((1, 2, 3)) * ((1 - contrast) * bright)
    turn *= (contrast * bright)[:, None, None]
    mixed = torch.baddbmm(mean[:, None, None], turn, images.flatten(2))
    return mixed.view_as(images)
