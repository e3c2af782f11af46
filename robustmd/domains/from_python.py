"""Domains that were made in Python: `data=from_python`, and the arrays and Datasets that
`DomainSet.from_tensors` takes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image
from pydantic import Field

from robustmd.errors import UserError, first_line
from robustmd.registry import Data, DataFacts, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain_set import DomainSet

READ_AGAIN = 4  # items of a Dataset; each may be as before by chance


@data("from_python")
class FromPython(Data):
    """The domains of `robustmd.train(domains=…)`: `given` to one run's settings, no setting."""

    fingerprint: str = key("", help="of the domains")
    given: Any = Field(None, exclude=True)

    def load(self, facts: DataFacts) -> DomainSet:
        if self.given is None:
            raise UserError(
                "data=from_python: its domains were made in Python; give them to "
                "robustmd.train(…, domains=DOMAINS) there"
            )
        domains: DomainSet = self.given
        for note in domains.notes:
            facts.say(note)
        return domains


class Part(NamedTuple):
    """The arrays of one split, as `DomainSet` has them."""

    domain: str
    split: str
    images: np.ndarray
    targets: np.ndarray


def read_parts(
    domains: Mapping[str, Sequence[Any]], features: bool
) -> tuple[list[Part], list[str]]:
    """The splits of all domains, and the names of those whose Dataset gives other items when it is
    read again. Raises UserError."""
    parts, changing = [], []
    torch_data = sys.modules.get("torch.utils.data")  # which whoever made a Dataset has loaded
    for domain, given in domains.items():
        arrays = list(given)
        if torch_data and arrays and all(isinstance(x, torch_data.Dataset) for x in arrays):
            arrays = [array for dataset in given for array in _read_dataset(domain, dataset)]
            changing += [domain] if any(map(_gives_other_items, given)) else []
        if len(arrays) != 4:
            raise UserError(
                f"domain {domain}: {len(arrays)} arrays given, needed are train images, train "
                "labels, test images and test labels, or two Datasets of torch: train and test"
            )
        for split, x, y in (("train", *arrays[:2]), ("test", *arrays[2:])):
            where = f"domain {domain}, {split} split"
            images, targets = _read_inputs(where, x, features), _read_targets(where, y)
            if len(targets) != len(images) or not len(targets):
                raise UserError(f"{where}: has {len(images)} images and {len(targets)} labels")
            parts.append(Part(domain, split, images, targets))
    return parts, changing


def check_part(part: Part, first: Part, num_classes: int) -> None:
    """Raises UserError for images or targets of another kind than those of `first`, and for targets
    that are none of so many classes or numbers."""
    images, targets, kind = part.images, part.targets, (first.targets.ndim, first.targets.dtype)
    low, high = targets.min(), targets.max()
    if (images.dtype, images.shape[1:]) != (first.images.dtype, first.images.shape[1:]):
        fault = f"its images are {images.dtype} {list(images.shape[1:])}, those of {first.domain} "
        fault += f"{first.images.dtype} {list(first.images.shape[1:])}; give all of one size"
    elif (targets.ndim, targets.dtype) != kind:
        fault = "its labels are numbers and others' are classes, or the other way round"
    elif not np.isfinite(targets).all():
        fault = "labels are not all finite"
    elif targets.ndim == 2 and targets.shape[1] != num_classes:
        fault = f"{targets.shape[1]} numbers an image, of which `classes` names {num_classes}"
    elif targets.ndim == 1 and (low < 0 or high >= num_classes):
        fault = f"labels run from {low} to {high}, but {num_classes} classes allow 0 to "
        fault += f"{num_classes - 1}"
    else:
        return
    raise UserError(f"domain {part.domain}, {part.split} split: {fault}")


def _read_dataset(domain: str, dataset: Any) -> list[np.ndarray]:
    """All x and all y, [N, …] each, of a Dataset whose items are pairs (x, y)."""
    try:
        x, y = zip(*[tuple(dataset[index]) for index in range(len(dataset))], strict=True)
        return [np.stack([_as_array(value) for value in values]) for values in (x, y)]
    except (TypeError, ValueError) as error:
        raise UserError(
            f"domain {domain}: {type(dataset).__name__} gives no pairs (x, y) of one shape, as a "
            f"map-style Dataset does ({first_line(error)})"
        ) from None


def _gives_other_items(dataset: Any) -> bool:
    for index in range(min(READ_AGAIN, len(dataset))):
        first, again = ([_as_array(value) for value in dataset[index]] for _ in range(2))
        if not all(map(np.array_equal, first, again)):
            return True
    return False


def _as_array(values: Any) -> np.ndarray:
    """Of an array, a sequence, a PIL image (RGB), or a torch tensor on whatever device."""
    if isinstance(values, Image.Image):
        values = values.convert("RGB")
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _read_targets(where: str, values: Any) -> np.ndarray:
    """int64 [N] or [N, L] of integers, float32 [N, L] of floating point [N] or [N, L]."""
    y = _as_array(values)
    if y.ndim in (1, 2) and y.dtype.kind == "f":
        return y.astype(np.float32).reshape(len(y), -1)
    if y.ndim in (1, 2) and y.dtype.kind in "iu":
        return y.astype(np.int64)
    raise UserError(
        f"{where}: labels are {y.dtype} {list(y.shape)}; needed are integers [N] for classes, "
        "integers [N, L] for tokens, or floating point [N] or [N, L] for numbers"
    )


def _read_inputs(where: str, values: Any, features: bool) -> np.ndarray:
    """uint8 [N, H, W, 3] of images, float32 [N, …] of features, int64 [N, …] of tokens."""
    x = _as_array(values)
    read = _read_features if features or (x.ndim == 2 and x.dtype != np.uint8) else _read_images
    if (inputs := read(x)) is not None:
        return inputs
    ends = f" from {x.min()} to {x.max()}" if x.size and x.dtype.kind in "iuf" else ""
    raise UserError(
        f"{where}: given is {x.dtype} {list(x.shape)}{ends}; images are uint8 in 0..255 or "
        "floating point in 0..1, [N, H, W], [N, C, H, W] or [N, H, W, C] with 1 or 3 channels, so "
        "that it is plain which they are, channels first or last; features are finite numbers "
        "[N, d] or, with DomainSet.from_tensors(…, features=True), [N, …]; tokens are int64 of "
        "such a shape, 0 or above"
    )


def _read_features(x: np.ndarray) -> np.ndarray | None:
    is_finite = x.dtype.kind == "f" and np.isfinite(x).all()
    are_tokens = x.dtype.kind == "i" and x.min(initial=0) >= 0
    if x.ndim < 2 or not (is_finite or are_tokens):
        return None
    return np.ascontiguousarray(x, np.float32 if is_finite else np.int64)


def _read_images(x: np.ndarray) -> np.ndarray | None:
    if x.ndim == 3:
        x = x[..., None]
    elif x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] not in (1, 3):
        x = np.moveaxis(x, 1, 3)
    elif x.ndim != 4 or x.shape[1] in (1, 3) or x.shape[3] not in (1, 3):
        return None
    if x.dtype.kind == "f" and (not x.size or (x.min() >= 0 and x.max() <= 1)):  # NaN is neither
        x = np.rint(x * 255).astype(np.uint8)
    if x.dtype != np.uint8:
        return None
    return np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:3], 3)))
