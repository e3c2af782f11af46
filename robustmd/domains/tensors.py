"""A user's arrays or tensors, brought to the form that `Examples` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robustmd.domains.datasets import as_array, is_dataset, read
from robustmd.domains.examples import Examples
from robustmd.errors import UserError


def examples_of(where: str, images: Any, labels: Any, features: bool = False) -> Examples:
    """One split, from the forms that `DomainSet.from_tensors` allows; where: the domain and the
    split, for the message. Raises UserError."""
    x, y = as_array(images), as_array(labels)
    if y.ndim in (1, 2) and np.issubdtype(y.dtype, np.floating):
        y = y.astype(np.float32).reshape(len(y), -1)
    elif y.ndim == 1 and np.issubdtype(y.dtype, np.integer):
        y = y.astype(np.int64)
    else:
        raise UserError(
            f"domain {where}: labels are {y.dtype} {list(y.shape)}; needed are integers [N] for "
            "classes, or floating point [N] or [N, L] for numbers"
        )
    return Examples(_features(where, x) if features else _images(where, x), y)


def arrays_of(name: str, given: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """train x, train y, test x, test y of a domain, from these or from two Datasets of torch.

    Raises UserError.
    """
    if len(given) == 4:
        train_x, train_y, test_x, test_y = given
        return train_x, train_y, test_x, test_y
    if len(given) == 2 and all(is_dataset(one) for one in given):
        train, test = given
        return *read(f"{name}, train", train), *read(f"{name}, test", test)
    raise UserError(
        f"domain {name}: {len(given)} arrays given, needed are train images, train labels, test "
        "images and test labels, or two Datasets of torch: train and test"
    )


def _images(where: str, x: np.ndarray) -> np.ndarray:
    """uint8 [N, H, W, 3] from any of the allowed forms; of two dimensions as `_features`."""
    if x.ndim == 2 and x.dtype != np.uint8:
        return _features(where, x)
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
            "[N, C, H, W] and [N, H, W, C] with 1 or 3 channels, features [N, d], "
            "tokens [N, L], and others by DomainSet.from_tensors(…, features=True)"
        )
    if np.issubdtype(x.dtype, np.floating):
        if x.size and not (x.min() >= 0 and x.max() <= 1):  # also refuses NaN
            raise UserError(
                f"domain {where}: floating-point images run from {x.min():.3g} to {x.max():.3g}; "
                "they must lie in 0..1, before any normalisation (features of this shape: "
                "DomainSet.from_tensors(…, features=True))"
            )
        x = np.rint(x * 255).astype(np.uint8)
    elif x.dtype != np.uint8:
        raise UserError(
            f"domain {where}: images are {x.dtype}; allowed are uint8 in 0..255 and floating "
            "point in 0..1"
        )
    return np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:3], 3)))


def _features(where: str, x: np.ndarray) -> np.ndarray:
    """float32 or int64 [N, 1, …, 1] of features or tokens [N, …]."""
    if x.ndim < 2 or x.dtype.kind not in "fi":
        raise UserError(
            f"domain {where}: features are {x.dtype} {list(x.shape)}; allowed are floating point "
            "[N, …], and tokens, int64 [N, …]"
        )
    if x.dtype.kind == "f":
        if not np.isfinite(x).all():
            raise UserError(f"domain {where}: features must be finite")
        return np.ascontiguousarray(x[:, None, ..., None], np.float32)
    if x.min(initial=0) < 0:
        raise UserError(f"domain {where}: tokens run from {x.min()}; they must be 0 or above")
    return np.ascontiguousarray(x[:, None, ..., None], np.int64)
