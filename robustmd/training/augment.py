"""Flips, turns and crops, done where the images are; what they are is in `domains.views`."""

from __future__ import annotations

import torch
from torch.nn import functional


def cropped(
    images: torch.Tensor, rows: torch.Tensor, corners: torch.Tensor, side: int
) -> torch.Tensor:
    """uint8 [m, s, s, 3]: an s×s crop of each chosen image; nothing but the crops is read.

    Args:
        images: uint8 [N, H, W, 3], contiguous.
        rows: int64 [m], which images.
        corners: int64 [m, 2], the crops' first row and column, from 0 to H − s and W − s.
        side: s.
    """
    _, height, width, channels = images.shape
    line = side * channels  # one row of a crop: that many consecutive bytes
    lines = images.view(-1).as_strided((images.numel() - line + 1, line), (1, 1))
    down = corners[:, :1] + torch.arange(side, device=corners.device)
    starts = ((rows[:, None] * height + down) * width + corners[:, 1:]) * channels
    return lines.index_select(0, starts.view(-1)).view(len(rows), side, side, channels)


def turned(
    images: torch.Tensor, matrices: torch.Tensor, corners: torch.Tensor, size: tuple[int, int]
) -> torch.Tensor:
    """uint8 [m, h, w, 3]: each image in its variant, of which the part at `corners` is kept.

    The pixel (x, y) from the centre shows what was at (a·x + b·y, c·x + d·y): bilinear between the
    four pixels around it, rounded; at the edge the outermost are repeated, and outside is black. So
    flips and right angles are exact, and the rest is Pillow's `rotate` but for its rounding down.

    Args:
        images: uint8 [m, H, W, 3].
        matrices: float32 [m, 4], (a, b, c, d).
        corners: int64 [m, 2], first row and column kept.
        size: (h, w) kept.
    """
    height, width = images.shape[1:3]
    y = _from_centre(corners[:, 0], size[0], height)[:, :, None]  # [m, h, 1]
    x = _from_centre(corners[:, 1], size[1], width)[:, None, :]  # [m, 1, w]
    a, b, c, d = matrices.T[:, :, None, None]
    grid = torch.stack([(a * x + b * y) * (2 / width), (c * x + d * y) * (2 / height)], dim=3)
    source = images.permute(0, 3, 1, 2).float()
    seen = functional.grid_sample(source, grid, padding_mode="border", align_corners=False)
    inside = ((grid >= -1) & (grid < 1)).all(3, keepdim=True)
    return seen.permute(0, 2, 3, 1).mul(inside).round_().to(torch.uint8).contiguous()


def _from_centre(first: torch.Tensor, count: int, total: int) -> torch.Tensor:
    """float32 [m, count]: the centres of `count` pixels from each `first` on, of `total` in all."""
    places = first[:, None] + torch.arange(count, device=first.device)
    return places.float() + (0.5 - total / 2)
