"""A user's arrays or tensors, brought to the form that `Examples` has."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustmd.domains.examples import Examples
from robustmd.errors import UserError


def examples_of(where: str, images: Any, labels: Any) -> Examples:
    """One split, from the forms that `DomainSet.from_tensors` allows; where: the domain and the
    split, for the message. Raises UserError."""
    x, y = _as_array(images), _as_array(labels)
    if y.ndim in (1, 2) and np.issubdtype(y.dtype, np.floating):
        y = y.astype(np.float32).reshape(len(y), -1)
    elif y.ndim == 1 and np.issubdtype(y.dtype, np.integer):
        y = y.astype(np.int64)
    else:
        raise UserError(
            f"domain {where}: labels are {y.dtype} {list(y.shape)}; needed are integers [N] for "
            "classes, or floating point [N] or [N, L] for numbers"
        )
    return Examples(_images(where, x), y)


def _as_array(values: Any) -> np.ndarray:
    # A torch tensor, on whatever device; torch itself is not needed here.
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _images(where: str, x: np.ndarray) -> np.ndarray:
    """uint8 [N, H, W, 3] from any of the allowed forms; float32 [N, 1, d, 1] of features."""
    if x.ndim == 2 and np.issubdtype(x.dtype, np.floating):
        if not np.isfinite(x).all():
            raise UserError(f"domain {where}: features must be finite")
        return np.ascontiguousarray(x[:, None, :, None], np.float32)
    if x.ndim == 3:
        x = x[..., None]
    elif x.ndim == 4 and x.shape[1] in (1, 3):
        if x.shape[3] in (1, 3):
            raise UserError(
                f"domain {where}: images of shape {list(x.shape)} can be read as channels first "
                "or last; pass [N, H, W, 3] with H other than 1 and 3"
            )
        x = np.moveaxis(x, 1, 3)
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        raise UserError(
            f"domain {where}: images have shape {list(x.shape)}; allowed are [N, H, W], "
            "[N, C, H, W] and [N, H, W, C] with 1 or 3 channels, and features [N, d]"
        )
    if np.issubdtype(x.dtype, np.floating):
        if x.size and not (x.min() >= 0 and x.max() <= 1):  # also refuses NaN
            raise UserError(
                f"domain {where}: floating-point images run from {x.min():.3g} to {x.max():.3g}; "
                "they must lie in 0..1, before any normalisation"
            )
        x = np.rint(x * 255).astype(np.uint8)
    elif x.dtype != np.uint8:
        raise UserError(
            f"domain {where}: images are {x.dtype}; allowed are uint8 in 0..255 and floating "
            "point in 0..1"
        )
    return np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:3], 3)))
