"""Turns, crops and noise of 8-bit images, where the images are.

Which of them a domain gets, its `Views` say. The noise is a function of a key and the pixel, the
same on every device.

For a key κ (one for each image seen) and the pixel's number i = 0, 1, …, counted over rows, columns
and channels, the noise is the ⌊i/4⌋-th output of SplitMix64 (Steele, Lea and Flood 2014) started at
κ, of whose 64 bits the (i mod 4)-th 16 choose one of 2¹⁶ equally likely quantiles of N(0, σ²):

    x ↦ clip(x + [σ·z_u], 0, 255),  z_u = Φ⁻¹((u + ½)/2¹⁶),  u = 0, …, 2¹⁶ − 1

with [·] to the nearest integer. |z| ends at 4.32; the mean is 0 and the variance 0.99998·σ² (plus
1/12 for rounding). Integers and one table throughout: every device gives the same, without state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from robustmd.domains.domain_set import Views

FIXED = {
    "identity": (1.0, 0.0, 0.0, 1.0),
    "flip_horizontal": (-1.0, 0.0, 0.0, 1.0),
    "flip_vertical": (1.0, 0.0, 0.0, -1.0),
}
QUANTILES = 2**16
BRIGHTEST = 255
GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2⁶⁴ divided by the golden ratio, as a signed integer
MULTIPLIERS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def matrix_of(variant: str) -> tuple[float, float, float, float]:
    """(a, b, c, d) of a variant: the pixel (x, y) from the centre shows what was at (a·x + b·y,
    c·x + d·y), with y downwards."""
    if variant in FIXED:
        return FIXED[variant]
    angle = math.radians(float(variant.removeprefix("rotate_")))
    c, s = (round(f(angle), 15) for f in (math.cos, math.sin))  # as Pillow has it
    return (c, -s, s, c)


class Look(NamedTuple):
    """Which stored images are seen, and how: n of them, or several batches of n.

    rows:    int64 [n], of the array of images
    turns:   int64 [n], numbers in `Variants.turns`; None: no image is turned or flipped
    corners: int64 [n, 2], first row and column of each crop; None: in the centre
    keys:    int64 [n], of the noise; None: no image is noisy
    levels:  int64 [n], where in `Variants.tables` the noise of its σ begins
    """

    rows: Tensor
    turns: Tensor | None = None
    corners: Tensor | None = None
    keys: Tensor | None = None
    levels: Tensor | None = None

    def to(self, device: torch.device) -> Look:
        return Look(*(None if x is None else x.to(device, non_blocking=True) for x in self))  # type: ignore[arg-type]


class Variants:
    """All turns, the crop and all levels of noise that the images of a data set are seen with.

    Args:
        views: those of every domain and split; their crop is the same.
        size: (H, W) of the stored images.
        device: where the images are seen.
    """

    def __init__(self, views: Sequence[Views], size: tuple[int, ...], device: torch.device) -> None:
        names = list(dict.fromkeys(["identity", *(n for one in views for n in one.variants)]))
        self.turns = {name: number for number, name in enumerate(names)}
        self.size, self.crop = size[:2], views[0].crop
        self.margin = [side - (self.crop or side) for side in self.size]  # H − s, W − s
        centre = torch.tensor([[room // 2 for room in self.margin]])
        self.centre = centre.to(device)
        self.matrices = torch.tensor([matrix_of(name) for name in names], device=device)
        self.places = self._places(self.matrices, self.centre)  # of crops in the centre
        sigmas = sorted({one.sigma for one in views})
        self.levels = {sigma: number * QUANTILES for number, sigma in enumerate(sigmas)}
        self.tables = torch.cat([noise_table(sigma) for sigma in sigmas]).to(device)

    def read(self, images: Tensor, look: Look) -> Tensor:
        """uint8 [n, …] of the array of images, where it is: whole, or crops that nothing turns."""
        if not any(self.margin) or look.turns is not None:
            # index_select copies whole images, several times faster than images[rows]
            return images.index_select(0, look.rows)
        corners = self.centre.to(images.device) if look.corners is None else look.corners
        return cropped(images, look.rows, corners.expand(len(look.rows), 2), self.crop or 0)

    def finish(self, images: Tensor, look: Look) -> Tensor:
        """uint8 [n, h, w, 3] from what `read` gave: turned and noisy, on the device."""
        if look.turns is not None:
            if look.corners is None:
                places, inside = (part.index_select(0, look.turns) for part in self.places)
            else:
                places, inside = self._places(self.matrices[look.turns], look.corners)
            images = turned(images, places, inside)
        if look.keys is not None:
            images = with_noise(images, look.keys, self.tables, look.levels)
        return images

    def _places(self, matrices: Tensor, corners: Tensor) -> tuple[Tensor, Tensor]:
        kept = [side - room for side, room in zip(self.size, self.margin, strict=True)]
        return turned_places(matrices, corners.expand(len(matrices), 2), kept, self.size)


def cropped(images: Tensor, rows: Tensor, corners: Tensor, side: int) -> Tensor:
    """uint8 [m, s, s, 3]: an s×s crop of each chosen image; nothing but the crops is read.

    images: uint8 [N, H, W, 3], contiguous; rows: int64 [m], which of them; corners: int64 [m, 2],
    the crops' first row and column, from 0 to H − s and W − s; side: s.
    """
    _, height, width, channels = images.shape
    line = side * channels  # one row of a crop: that many consecutive bytes
    lines = images.view(-1).as_strided((images.numel() - line + 1, line), (1, 1))
    down = corners[:, :1] + torch.arange(side, device=corners.device)
    starts = ((rows[:, None] * height + down) * width + corners[:, 1:]) * channels
    return lines.index_select(0, starts.view(-1)).view(len(rows), side, side, channels)


def turned(images: Tensor, places: Tensor, inside: Tensor) -> Tensor:
    """uint8 [m, h, w, 3] from uint8 [m, H, W, 3]: each image as `turned_places` says.

    Between four pixels it is bilinear, rounded; at the edge the outermost are repeated, and outside
    is black. So flips and right angles are exact, and the rest is Pillow's `rotate` but for its
    rounding down.
    """
    source = images.permute(0, 3, 1, 2).float()
    sampled = functional.grid_sample(source, places, padding_mode="border", align_corners=False)
    return sampled.permute(0, 2, 3, 1).mul(inside).round_().to(torch.uint8).contiguous()


def turned_places(
    matrices: Tensor, corners: Tensor, size: Sequence[int], whole: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Where each pixel of a turned image was: float32 [m, h, w, 2] of (x, y), −1 to 1 from edge to
    edge; and float32 [m, h, w, 1]: 1, but 0 where that is outside.

    The pixel (x, y) from the centre shows what was at (a·x + b·y, c·x + d·y).

    matrices: float32 [m, 4], (a, b, c, d); corners: int64 [m, 2], first row and column of the part
    of the turned image that is kept; size: (h, w) kept; whole: (H, W) of the images.
    """
    height, width = whole
    y = _from_centre(corners[:, 0], size[0], height)[:, :, None]  # [m, h, 1]
    x = _from_centre(corners[:, 1], size[1], width)[:, None, :]  # [m, 1, w]
    a, b, c, d = matrices.T[:, :, None, None]
    places = torch.stack([(a * x + b * y) * (2 / width), (c * x + d * y) * (2 / height)], dim=3)
    inside = ((places >= -1) & (places < 1)).all(3, keepdim=True)
    return places, inside.float()


def _from_centre(first: Tensor, count: int, total: int) -> Tensor:
    """float32 [m, count]: the centres of `count` pixels from each `first` on, of `total` in all."""
    places = first[:, None] + torch.arange(count, device=first.device)
    return places.float() + (0.5 - total / 2)


@cache
def noise_table(sigma: float) -> Tensor:
    """int16 [2¹⁶], on the host: [σ·z_u], limited to ±255, beyond which all is clipped anyway."""
    u = torch.arange(QUANTILES, dtype=torch.float64)
    z = torch.special.ndtri((u + 0.5) / QUANTILES)
    return (z * sigma).round().clamp(-BRIGHTEST, BRIGHTEST).to(torch.int16)


def with_noise(
    images: Tensor, keys: Tensor, tables: Tensor, levels: Tensor | None = None
) -> Tensor:
    """uint8 [m, H, W, 3]: the images with the noise of their keys, int64 [m].

    tables: `noise_table`, or several one after another, on the images' device; levels: int64 [m],
    where in them each image's begins; None: at 0.
    """
    if levels is None:
        return _noisy(images, keys, tables, None)
    order = levels.argsort(stable=True)  # one table at a time: that one stays in a CPU's cache
    noisy = _noisy(images.index_select(0, order), keys[order], tables, levels[order])
    return torch.empty_like(images).index_copy_(0, order, noisy)


def _noisy(images: Tensor, keys: Tensor, tables: Tensor, levels: Tensor | None) -> Tensor:
    pixels = images[0].numel()
    words = torch.arange(1, -(-pixels // 4) + 1, device=keys.device) * GOLDEN
    bits = mixed(keys[:, None] + words).view(torch.int16)[:, :pixels]
    places = bits.int().add_(QUANTILES // 2)  # index_select is several times faster than [...]
    if levels is not None:
        places += levels[:, None].int()
    noise = tables.index_select(0, places.view(-1)).view(images.shape)
    return noise.add_(images).clamp_(0, BRIGHTEST).to(torch.uint8)


def keys_of_images(start: int, numbers: Tensor) -> Tensor:
    """int64 [m]: the key that stays an image's own, from its number (int64 [m], ≥ 0).

    start: 0 ≤ start < 2⁶³; another start gives other keys.
    """
    return mixed(numbers * GOLDEN + start)


def mixed(x: Tensor) -> Tensor:
    """SplitMix64's output function on int64 of any shape: a bijection of the 64-bit integers."""
    x = x.bitwise_xor(_shifted(x, 30)).mul_(MULTIPLIERS[0])
    x.bitwise_xor_(_shifted(x, 27)).mul_(MULTIPLIERS[1])
    return x.bitwise_xor_(_shifted(x, 31))


def _shifted(x: Tensor, bits: int) -> Tensor:
    """x >> bits as of unsigned integers: torch's own shift repeats the sign."""
    return (x >> bits).bitwise_and_(2 ** (64 - bits) - 1)
