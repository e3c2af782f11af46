"""What is done to 8-bit pixels where they are: crops, flips, turns, noise, and floats of them.

Which of it a domain gets, `domains.examples` says. The noise is a function of a key and the
pixel, the same on every device.

For a key κ (one for each image seen) and the pixel's number i = 0, 1, …, counted over rows, columns
and channels, the noise is the ⌊i/4⌋-th output of SplitMix64 (Steele, Lea and Flood 2014) started at
κ, of whose 64 bits the (i mod 4)-th 16 choose one of 2¹⁶ equally likely quantiles of N(0, σ²):

    x ↦ clip(x + [σ·z_u], 0, 255),  z_u = Φ⁻¹((u + ½)/2¹⁶),  u = 0, …, 2¹⁶ − 1

with [·] to the nearest integer. |z| ends at 4.32; the mean is 0 and the variance 0.99998·σ² (plus
1/12 for rounding). Integers and one table throughout: every device gives the same, without state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch.nn import functional

QUANTILES = 2**16
BRIGHTEST = 255
GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2⁶⁴ divided by the golden ratio, as a signed integer
MULTIPLIERS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def normalised(images: torch.Tensor) -> torch.Tensor:
    """uint8 [n, H, W, 3] -> float32 [n, 3, H, W], channels last in memory; features or
    tokens [n, 1, …, 1] -> [n, …], as they are.

    x ↦ (x/255 − 0.5)/0.25, the same for every domain, so in [−2, 2]. The paper does not say; with
    [−1, 1] a network without batch norm stays at its starting loss for hundreds of iterations.
    """
    if images.dtype != torch.uint8:
        return images[:, 0, ..., 0]
    return images.permute(0, 3, 1, 2).float().div_(63.75).sub_(2.0)


def cropped(
    images: torch.Tensor, rows: torch.Tensor, corners: torch.Tensor, side: int
) -> torch.Tensor:
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


def turned(images: torch.Tensor, places: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """uint8 [m, h, w, 3] from uint8 [m, H, W, 3]: each image as `turned_places` says.

    Between four pixels it is bilinear, rounded; at the edge the outermost are repeated, and outside
    is black. So flips and right angles are exact, and the rest is Pillow's `rotate` but for its
    rounding down.
    """
    source = images.permute(0, 3, 1, 2).float()
    sampled = functional.grid_sample(source, places, padding_mode="border", align_corners=False)
    return sampled.permute(0, 2, 3, 1).mul(inside).round_().to(torch.uint8).contiguous()


def turned_places(
    matrices: torch.Tensor, corners: torch.Tensor, size: Sequence[int], whole: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
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


def _from_centre(first: torch.Tensor, count: int, total: int) -> torch.Tensor:
    """float32 [m, count]: the centres of `count` pixels from each `first` on, of `total` in all."""
    places = first[:, None] + torch.arange(count, device=first.device)
    return places.float() + (0.5 - total / 2)


@cache
def noise_table(sigma: float) -> torch.Tensor:
    """int16 [2¹⁶], on the host: [σ·z_u], limited to ±255, beyond which all is clipped anyway."""
    u = torch.arange(QUANTILES, dtype=torch.float64)
    z = torch.special.ndtri((u + 0.5) / QUANTILES)
    return (z * sigma).round().clamp(-BRIGHTEST, BRIGHTEST).to(torch.int16)


def with_noise(
    images: torch.Tensor,
    keys: torch.Tensor,
    tables: torch.Tensor,
    starts: torch.Tensor | None = None,
) -> torch.Tensor:
    """uint8 [m, H, W, 3]: the images with the noise of their keys, int64 [m].

    tables: `noise_table`, or several one after another, on the images' device; starts: int64 [m],
    where in them each image's begins; None: at 0.
    """
    if starts is None:
        return _noisy(images, keys, tables, None)
    order = starts.argsort(stable=True)  # one table at a time: that one stays in a CPU's cache
    noisy = _noisy(images.index_select(0, order), keys[order], tables, starts[order])
    return torch.empty_like(images).index_copy_(0, order, noisy)


def _noisy(
    images: torch.Tensor, keys: torch.Tensor, tables: torch.Tensor, starts: torch.Tensor | None
) -> torch.Tensor:
    pixels = images[0].numel()
    words = torch.arange(1, -(-pixels // 4) + 1, device=keys.device) * GOLDEN
    bits = mixed(keys[:, None] + words).view(torch.int16)[:, :pixels]
    places = bits.int().add_(QUANTILES // 2)  # index_select is several times faster than [...]
    if starts is not None:
        places += starts[:, None].int()
    noise = tables.index_select(0, places.view(-1)).view(images.shape)
    return noise.add_(images).clamp_(0, BRIGHTEST).to(torch.uint8)


def keys_of_images(start: int | torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """int64 [m]: the key that stays an image's own, from its number (int64 [m], ≥ 0).

    start: 0 ≤ start < 2⁶³, one or (int64 [m]) one each; another start gives other keys.
    """
    return mixed(numbers * GOLDEN + start)


def mixed(x: torch.Tensor) -> torch.Tensor:
    """SplitMix64's output function on int64 of any shape: a bijection of the 64-bit integers."""
    x = x.bitwise_xor(_shifted(x, 30)).mul_(MULTIPLIERS[0])
    x.bitwise_xor_(_shifted(x, 27)).mul_(MULTIPLIERS[1])
    return x.bitwise_xor_(_shifted(x, 31))


def _shifted(x: torch.Tensor, bits: int) -> torch.Tensor:
    """x >> bits as of unsigned integers: torch's own shift repeats the sign."""
    return (x >> bits).bitwise_and_(2 ** (64 - bits) - 1)
