"""Gaussian noise on 8-bit pixels: a function of a key and the pixel, the same on every device.

For a key κ (one for each image seen) and the pixel's number i = 0, 1, …, counted over rows, columns
and channels, the noise is the ⌊i/4⌋-th output of SplitMix64 (Steele, Lea and Flood 2014) started at
κ, of whose 64 bits the (i mod 4)-th 16 choose one of 2¹⁶ equally likely quantiles of N(0, σ²):

    x ↦ clip(x + [σ·z_u], 0, 255),  z_u = Φ⁻¹((u + ½)/2¹⁶),  u = 0, …, 2¹⁶ − 1

with [·] to the nearest integer. |z| ends at 4.32; the mean is 0 and the variance 0.99998·σ² (plus
1/12 for rounding). Integers and one table throughout: every device gives the same, without state.
"""

from __future__ import annotations

from functools import cache

import torch

QUANTILES = 2**16
BRIGHTEST = 255
GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2⁶⁴ divided by the golden ratio, as a signed integer
MULTIPLIERS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


@cache
def noise_table(sigma: float) -> torch.Tensor:
    """int16 [2¹⁶], on the host: [σ·z_u], limited to ±255, beyond which all is clipped anyway."""
    u = torch.arange(QUANTILES, dtype=torch.float64)
    z = torch.special.ndtri((u + 0.5) / QUANTILES)
    return (z * sigma).round().clamp(-BRIGHTEST, BRIGHTEST).to(torch.int16)


def with_noises(
    images: torch.Tensor, keys: torch.Tensor, tables: torch.Tensor, starts: torch.Tensor
) -> torch.Tensor:
    """The same as `with_noise` for images of different σ.

    Args:
        images: uint8 [m, H, W, 3].
        keys: int64 [m], any values.
        tables: several of `noise_table` one after another, on the images' device.
        starts: int64 [m], where in it each image's table begins.
    """
    order = starts.argsort(stable=True)  # one table at a time: that one stays in a CPU's cache
    parts = images.index_select(0, order), keys[order], tables, starts[order]
    return torch.empty_like(images).index_copy_(0, order, with_noise(*parts))


def with_noise(
    images: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    table_starts: torch.Tensor | None = None,
) -> torch.Tensor:
    """uint8 [m, H, W, 3]: the images with the noise of their keys.

    Args:
        images: uint8 [m, H, W, 3].
        keys: int64 [m], any values.
        table: of `noise_table`, on the images' device.
        table_starts: see `with_noises`.
    """
    pixels = images[0].numel()
    words = torch.arange(1, -(-pixels // 4) + 1, device=keys.device) * GOLDEN
    bits = mixed(keys[:, None] + words).view(torch.int16)[:, :pixels]
    places = bits.int().add_(QUANTILES // 2)  # index_select is several times faster than [...]
    if table_starts is not None:
        places += table_starts[:, None].int()
    noise = table.index_select(0, places.view(-1)).view(images.shape)
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
