"""SVHN's MATLAB files: X uint8 [32, 32, 3, N] and y [N, 1] with labels 1…10, where 10 is digit 0.

Names, types and shapes are looked up before anything is loaded, and only X and y are ever loaded:
a file with structs, objects or an N beyond what its bytes can hold is refused. scipy does the
reading; whatever it raises on garbled bytes becomes one line.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from robustmd.errors import UserError

SIDE = 32
CHANNELS = 3
IMAGE_BYTES = SIDE * SIDE * CHANNELS
DEFLATE_RATIO = 1032  # no deflate stream expands by more
BLOCK_IMAGES = 2048  # 6 MiB
NUMBERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "double", "single")

T = TypeVar("T")


def count(path: Path) -> int:
    """Number N of images that the header announces. Raises UserError if this is no such file."""
    listed = _guarded(path, lambda whosmat: whosmat(str(path)), "whosmat")
    variables = {name: (tuple(shape), kind) for name, shape, kind in listed}
    if len(listed) != len(variables) or not {"X", "y"} <= set(variables):
        raise _refusal(path, f"it holds {sorted(variables) or 'nothing'}, where X and y are due")
    (shape, kind), (label_shape, label_kind) = variables["X"], variables["y"]
    if len(shape) == 3:  # MATLAB drops a last size of 1
        shape = (*shape, 1)
    if shape[:3] != (SIDE, SIDE, CHANNELS) or len(shape) != 4 or kind != "uint8":
        sizes = "×".join(map(str, shape))
        raise _refusal(path, f"X is {kind} {sizes}, where uint8 {SIDE}×{SIDE}×{CHANNELS}×N is due")
    images = shape[3]
    if images < 1 or images * IMAGE_BYTES > path.stat().st_size * DEFLATE_RATIO:
        raise _refusal(path, f"it announces {images:,} images, which its bytes cannot hold")
    if label_shape != (images, 1) or label_kind not in NUMBERS:
        sizes = "×".join(map(str, label_shape))
        raise _refusal(path, f"y is {label_kind} {sizes}, where numbers {images}×1 are due")
    return int(images)


def labels(path: Path) -> np.ndarray:
    """The digits 0…9: int64 [N]. Raises UserError for labels outside 1…10."""
    images = count(path)
    y = _load(path, "y")
    if y.shape != (images, 1) or y.dtype.kind not in "uif":
        raise _refusal(path, "y is not as announced")
    digits = y[:, 0]
    if not np.isin(digits, np.arange(1, 11)).all():
        raise _refusal(path, f"its labels run from {digits.min()} to {digits.max()}, not 1 to 10")
    return digits.astype(np.int64) % 10


def image_blocks(path: Path) -> Iterator[np.ndarray]:
    """The images in order, in blocks of uint8 [n, 32, 32, 3]. Raises UserError.

    MATLAB keeps N as the slowest and the row as the fastest index, so that the loaded array is
    turned block by block and never held twice.
    """
    images = count(path)
    x = _load(path, "X").reshape(SIDE, SIDE, CHANNELS, images, order="F")
    if x.dtype != np.uint8:
        raise _refusal(path, "X is not as announced")
    for start in range(0, images, BLOCK_IMAGES):
        block = x[..., start : start + BLOCK_IMAGES]
        yield np.ascontiguousarray(block.transpose(3, 0, 1, 2))


def _load(path: Path, name: str) -> np.ndarray:
    loaded = _guarded(path, lambda loadmat: loadmat(str(path), variable_names=[name]), "loadmat")
    value = loaded.get(name)
    if not isinstance(value, np.ndarray):
        raise _refusal(path, f"{name} is no array")
    return value


def _guarded(path: Path, call: Callable[[Any], T], function: str) -> T:
    """Call one of scipy.io's functions, with every failure as a UserError."""
    import scipy.io  # noqa: PLC0415  # slow; only where MATLAB files are read

    try:
        path.stat()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is checked; the rest is refused
            return call(getattr(scipy.io, function))
    except (MemoryError, zlib.error) as error:
        raise _refusal(path, f"its data are broken ({error or 'out of memory'})") from error
    except OSError as error:
        if error.errno is None:  # scipy's own, on a short file
            raise _refusal(path, f"its data are broken ({error})") from error
        raise UserError(f"cannot read {path} ({error.strerror})") from error
    except Exception as error:  # garbled bytes take scipy anywhere
        raise _refusal(path, f"{type(error).__name__}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


def _refusal(path: Path, fault: str) -> UserError:
    return UserError(
        f"{path} is not a whole SVHN file: {fault}; delete it to have it fetched again, "
        "or put the original in its place"
    )
