"""A user's arrays, tensors or Datasets of torch, brought to the form that a `DomainSet` has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from robustmd.errors import UserError, first_line

Pair = tuple[np.ndarray, np.ndarray]  # images and labels
IMAGES = (
    "images are uint8 in 0..255 or floating point in 0..1, [N, H, W], [N, C, H, W] or [N, H, W, C] "
    "with 1 or 3 channels, so that it is plain which they are, channels first or last; features "
    "are finite numbers [N, d] or, with DomainSet.from_tensors(…, features=True), [N, …]; tokens "
    "are int64 of such a shape, 0 or above"
)


def split_arrays(domain: str, given: Sequence[Any], features: bool) -> tuple[Pair, Pair]:
    """The training and the test split of a domain, from the forms that `DomainSet.from_tensors`
    allows. Raises UserError."""
    torch_data = sys.modules.get("torch.utils.data")  # which whoever made a Dataset has loaded
    if len(given) == 2 and torch_data and all(isinstance(x, torch_data.Dataset) for x in given):
        train, test = given
        given = *_items(f"{domain}, train", train), *_items(f"{domain}, test", test)
    if len(given) != 4:
        raise UserError(
            f"domain {domain}: {len(given)} arrays given, needed are train images, train labels, "
            "test images and test labels, or two Datasets of torch: train and test"
        )
    train_x, train_y, test_x, test_y = map(_array, given)
    return (
        _pair(f"{domain}, train", train_x, train_y, features),
        _pair(f"{domain}, test", test_x, test_y, features),
    )


def _pair(where: str, x: np.ndarray, y: np.ndarray, features: bool) -> Pair:
    """Images or features and labels, as a `Split` has them; where: for the message."""
    if y.ndim in (1, 2) and np.issubdtype(y.dtype, np.floating):
        y = y.astype(np.float32).reshape(len(y), -1)
    elif y.ndim == 1 and np.issubdtype(y.dtype, np.integer):
        y = y.astype(np.int64)
    else:
        raise UserError(
            f"domain {where}: labels are {y.dtype} {list(y.shape)}; needed are integers [N] for "
            "classes, or floating point [N] or [N, L] for numbers"
        )
    read = _features if features or (x.ndim == 2 and x.dtype != np.uint8) else _images
    images = read(x)
    if images is None:
        ends = f" from {x.min()} to {x.max()}" if x.size and x.dtype.kind in "iuf" else ""
        raise UserError(f"domain {where}: given is {x.dtype} {list(x.shape)}{ends}; {IMAGES}")
    if len(y) != len(images):
        wanted = f"int64 [{len(images)}] or float32 [{len(images)}, L]"
        raise UserError(f"domain {where}: labels are {y.dtype} {list(y.shape)}, not {wanted}")
    return images, y


def _items(where: str, dataset: Any) -> list[np.ndarray]:
    """All x and all y, [N, …] each, of a Dataset whose items are pairs (x, y)."""
    what = f"domain {where}: {type(dataset).__name__}"
    try:
        pairs = [tuple(dataset[index]) for index in range(len(dataset))]
        x, y = ([_array(value) for value in values] for values in zip(*pairs, strict=True))
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{what} gives no pairs (x, y), as a map-style Dataset does ({first_line(error)})"
        ) from None
    for name, arrays in (("x", x), ("y", y)):
        kinds = dict.fromkeys(f"{array.dtype} {list(array.shape)}" for array in arrays)
        if len(kinds) > 1:
            raise UserError(
                f"{what}: {name} is {' and '.join([*kinds][:2])}; all must be alike, as by "
                "cropping or padding"
            )
    return [np.stack(x), np.stack(y)]


def _array(values: Any) -> np.ndarray:
    """Of an array, a sequence, a PIL image (RGB), or a torch tensor on whatever device."""
    if isinstance(values, Image.Image):
        values = values.convert("RGB")
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _images(x: np.ndarray) -> np.ndarray | None:
    """uint8 [N, H, W, 3] from any of the allowed forms."""
    if x.ndim == 3:
        x = x[..., None]
    elif x.ndim == 4 and x.shape[1] in (1, 3):
        if x.shape[3] in (1, 3):
            return None
        x = np.moveaxis(x, 1, 3)
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        return None
    if np.issubdtype(x.dtype, np.floating):
        if x.size and not (x.min() >= 0 and x.max() <= 1):  # also refuses NaN
            return None
        x = np.rint(x * 255).astype(np.uint8)
    if x.dtype != np.uint8:
        return None
    return np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:3], 3)))


def _features(x: np.ndarray) -> np.ndarray | None:
    """float32 or int64 [N, …] of features or tokens [N, …]."""
    is_sound = x.dtype.kind == "f" and np.isfinite(x).all()
    is_sound |= x.dtype.kind == "i" and x.min(initial=0) >= 0
    if x.ndim < 2 or not is_sound:
        return None
    return np.ascontiguousarray(x, np.float32 if x.dtype.kind == "f" else np.int64)
