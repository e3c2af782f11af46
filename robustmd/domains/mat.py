"""SVHN's MATLAB files: X uint8 [32, 32, 3, N] and y [N, 1] with labels 1…10, where 10 is digit 0.

Names, types and shapes are checked before any value is read; X is read in blocks of images.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robustmd.domains import mat5
from robustmd.domains.mat5_elements import FormatError
from robustmd.errors import UserError

SIDE = 32
CHANNELS = 3
IMAGE_BYTES = SIDE * SIDE * CHANNELS
BLOCK_IMAGES = 1024  # 3 MiB


def labels(path: Path) -> np.ndarray:
    """The digits 0…9: int64 [N]. Raises UserError, also for labels outside 1…10."""
    _, y = _variables(path)
    digits = np.concatenate(list(_blocks(path, y, y.shape[0])))
    if not np.isin(digits, np.arange(1, 11)).all():
        raise _refusal(path, f"its labels run from {digits.min()} to {digits.max()}, not 1 to 10")
    return digits.astype(np.int64) % 10


def image_blocks(path: Path) -> Iterator[np.ndarray]:
    """The images in order, in blocks of uint8 [n, 32, 32, 3]. Raises UserError."""
    x, _ = _variables(path)
    for values in _blocks(path, x, BLOCK_IMAGES * IMAGE_BYTES):
        # MATLAB keeps the row as the fastest index, then the column, the channel and the image.
        block = values.reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 3, 2, 1)
        yield np.ascontiguousarray(block)


def _variables(path: Path) -> tuple[mat5.Variable, mat5.Variable]:
    """X and y, of the same N and as they should be."""
    try:
        listed = mat5.variables(path)
    except FormatError as error:
        raise _refusal(path, str(error)) from error
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error
    names = sorted(variable.name for variable in listed)
    if names.count("X") != 1 or names.count("y") != 1:
        raise _refusal(path, f"it holds {', '.join(names)[:60] or 'nothing'}, not one X and one y")
    x, y = (next(v for v in listed if v.name == name) for name in ("X", "y"))
    # MATLAB leaves the last size out where it is 1.
    images = x.shape[3] if len(x.shape) == 4 else 1
    of_pixels = x.kind == "uint8" and x.dtype == np.uint8
    if x.shape[:3] != (SIDE, SIDE, CHANNELS) or len(x.shape) > 4 or not of_pixels:
        raise _refusal(path, f"X is {_text(x)}, where uint8 {SIDE}×{SIDE}×{CHANNELS}×N is due")
    if images < 1 or y.shape != (images, 1) or y.dtype is None:
        raise _refusal(path, f"y is {_text(y)}, where numbers {images}×1 are due")
    return x, y


def _blocks(path: Path, variable: mat5.Variable, size: int) -> Iterator[np.ndarray]:
    try:
        yield from mat5.blocks(path, variable, size)
    except FormatError as error:
        raise _refusal(path, str(error)) from error
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error


def _text(variable: mat5.Variable) -> str:
    stored = variable.dtype.name if variable.dtype else "no plain numbers"
    return f"{variable.kind} {'×'.join(map(str, variable.shape))} (stored as {stored})"


def _refusal(path: Path, fault: str) -> UserError:
    return UserError(
        f"{path} is not a whole SVHN file: {fault}; delete it to have it fetched again, "
        "or put the original in its place"
    )
