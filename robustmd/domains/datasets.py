"""Map-style Datasets of torch, read once into arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from robustmd.errors import UserError


def as_array(values: Any) -> np.ndarray:
    """Of an array, a sequence, a PIL image (RGB), or a torch tensor on whatever device."""
    if isinstance(values, Image.Image):
        values = values.convert("RGB")
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def is_dataset(given: Any) -> bool:
    """Whether it is a Dataset of torch, which whoever made one has loaded."""
    torch_data = sys.modules.get("torch.utils.data")
    return torch_data is not None and isinstance(given, torch_data.Dataset)


def read(where: str, dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    """All x and all y, [N, …] each, of a Dataset whose items are pairs (x, y).

    where: the domain and the split, for the message. Raises UserError.
    """
    kind = type(dataset).__name__
    if isinstance(dataset, sys.modules["torch.utils.data"].IterableDataset):
        raise UserError(f"domain {where}: {kind} is an IterableDataset; needed is a map-style one")
    pairs = []
    for index in range(len(dataset)):
        item = dataset[index]
        if not (isinstance(item, tuple | list) and len(item) == 2):
            raise UserError(
                f"domain {where}: item {index} of {kind} is a {type(item).__name__}; needed are "
                "pairs (x, y)"
            )
        pairs.append(item)
    if not pairs:
        raise UserError(f"domain {where}: {kind} has no items")
    x, y = zip(*pairs, strict=True)
    return _stacked(f"domain {where}: x", x), _stacked(f"domain {where}: y", y)


def _stacked(what: str, values: Sequence[Any]) -> np.ndarray:
    arrays = [as_array(value) for value in values]
    first = arrays[0]
    for index, array in enumerate(arrays):
        if (array.dtype, array.shape) != (first.dtype, first.shape):
            raise UserError(
                f"{what} of item 0 is {first.dtype} {list(first.shape)} and of item {index} "
                f"{array.dtype} {list(array.shape)}; all must be alike, as by cropping or padding"
            )
    return np.stack(arrays)
