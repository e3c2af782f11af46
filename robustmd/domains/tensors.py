"""A user's arrays or tensors, brought to the form that `Domain` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robustmd.domains.checksums import array_sha256, fingerprint
from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.errors import UserError


def set_from_tensors(
    tensors: Mapping[str, Sequence[Any]], name: str, classes: Sequence[str] | None
) -> DomainSet:
    """What `DomainSet.from_tensors` says."""
    domains = tuple(_domain(key, value) for key, value in tensors.items())
    splits = {d.name: {"train": d.train, "test": d.test} for d in domains}
    if classes is None:
        labels = [e.labels.max() for by_split in splits.values() for e in by_split.values()]
        classes = [str(label) for label in range(max(labels, default=-1) + 1)]
    checksums = {
        domain: {
            f"{split}_{part}": array_sha256(getattr(examples, part))
            for split, examples in by_split.items()
            for part in ("images", "labels")
        }
        for domain, by_split in splits.items()
    }
    return DomainSet(name, domains, tuple(classes), fingerprint(name, classes, checksums))


def _domain(name: str, tensors: Sequence[Any]) -> Domain:
    """A domain of (train_x, train_y, test_x, test_y)."""
    if len(tensors) != 4:
        raise UserError(
            f"domain {name}: {len(tensors)} arrays given, needed are train images, train labels, "
            "test images and test labels"
        )
    train_x, train_y, test_x, test_y = map(_as_array, tensors)
    return Domain(
        name,
        train=Examples(_images(f"{name}, train", train_x), _labels(f"{name}, train", train_y)),
        test=Examples(_images(f"{name}, test", test_x), _labels(f"{name}, test", test_y)),
        source="tensors in memory",
    )


def _as_array(values: Any) -> np.ndarray:
    # A torch tensor, on whatever device; torch itself is not needed here.
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _images(where: str, x: np.ndarray) -> np.ndarray:
    """uint8 [N, H, W, 3] from any of the allowed forms."""
    if x.ndim == 3:
        x = x[..., None]
    elif x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] in (1, 3):
        raise UserError(
            f"domain {where}: images of shape {list(x.shape)} can be read as channels first or "
            "last; pass [N, H, W, 3] with H other than 1 and 3"
        )
    elif x.ndim == 4 and x.shape[1] in (1, 3):
        x = np.moveaxis(x, 1, 3)
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        raise UserError(
            f"domain {where}: images have shape {list(x.shape)}; allowed are [N, H, W], "
            "[N, C, H, W] and [N, H, W, C] with 1 or 3 channels"
        )
    x = _to_uint8(where, x)
    return np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:3], 3)))


def _to_uint8(where: str, x: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint8:
        return x
    if not np.issubdtype(x.dtype, np.floating):
        raise UserError(
            f"domain {where}: images are {x.dtype}; allowed are uint8 in 0..255 and floating "
            "point in 0..1"
        )
    if x.size and not (x.min() >= 0 and x.max() <= 1):  # also refuses NaN
        raise UserError(
            f"domain {where}: floating-point images run from {x.min():.3g} to {x.max():.3g}; "
            "they must lie in 0..1, before any normalisation"
        )
    return np.rint(x * 255).astype(np.uint8)


def _labels(where: str, y: np.ndarray) -> np.ndarray:
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
        raise UserError(
            f"domain {where}: labels are {y.dtype} {list(y.shape)}; needed are integers [N]"
        )
    return y.astype(np.int64)
