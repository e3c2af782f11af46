"""SVHN's cropped digits, 32×32 RGB as they come, from its MATLAB files.

X is uint8 [32, 32, 3, N], and y [N, 1] holds labels 1…10, where 10 is digit 0. scipy reads them,
but on some garbled files it ends the process by a segmentation fault, which no caller can catch.
So only bytes that are known to be the published ones are read in this process; others are read in
one of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import file_md5
from robustmd.errors import UserError

FILES = ("train_32x32.mat", "test_32x32.mat")
EXTRA = "extra_32x32.mat"
MD5 = {  # torchvision's, which takes seconds to import
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
}
IMAGE = (32, 32, 3)
IMAGE_BYTES = 32 * 32 * 3
NUMBERS = ("double", "single", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)))
MAX_BYTES = 1 << 31  # of images: the extra digits take 1.6 · 10⁹; more cannot be meant
DEFLATE_RATIO = 1032  # no deflate stream expands by more
BLOCK_IMAGES = 1024
CHILD = "import sys; from robustmd.domains.svhn import convert; convert(*sys.argv[1:])"


def md5(path: Path) -> str:
    """Hex md5 of the file. Raises UserError if it cannot be read."""
    try:
        return file_md5(path)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error


def build(paths: Mapping[str, Path], writer: ArrayWriter, *, published: bool) -> None:
    """Write {train,test}_{images,labels}. Raises UserError.

    paths: by the names of `FILES`; the extra digits follow the training digits where their file is
        among them
    published: the files are known to be the published ones
    """
    train, test = FILES
    splits = {"train": [train, EXTRA] if EXTRA in paths else [train], "test": [test]}
    for split, names in splits.items():
        with TemporaryDirectory(dir=writer.folder) as scratch:
            read = [
                _read(paths[name]) if published else _read_apart(paths[name], Path(scratch, name))
                for name in names
            ]
            labels = np.concatenate([digits for _, digits in read])
            blocks = (block for images, _ in read for block in _blocks(images))
            writer.add(f"{split}_images", "uint8", (len(labels), *IMAGE), blocks)
            writer.add(f"{split}_labels", "int64", labels.shape, [labels])
            del read, blocks  # memory maps of the folder that is now removed


def convert(path: str, folder: str) -> None:
    """What the other process does: X.npy and y.npy in `folder`, or exit code 2 and one line."""
    try:
        images, digits = _read(Path(path))
    except UserError as error:
        print(error, file=sys.stderr)  # noqa: T201 - this process has nobody else to tell
        sys.exit(2)
    np.save(Path(folder, "X.npy"), images)
    np.save(Path(folder, "y.npy"), digits)


def _read_apart(path: Path, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """As `_read`, in another process; the images are a memory map of a file in `folder`."""
    folder.mkdir()
    command = [sys.executable, "-c", CHILD, str(path.absolute()), str(folder.absolute())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    if done.returncode == 2:
        raise UserError(last)
    if done.returncode:
        raise _refusal(path, f"scipy broke down over it ({last[:200]})")
    return np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """X as it is stored, uint8 [32, 32, 3, N], and the digits 0…9, int64 [N]. Raises UserError."""
    from scipy.io import loadmat, whosmat  # noqa: PLC0415 - not needed once it is prepared

    try:
        with path.open("rb") as file:
            _check_head(path, whosmat(file))
            found = loadmat(file, variable_names=("X", "y"))
    except (UserError, MemoryError):
        raise
    except Exception as error:  # scipy raises anything over bytes that are damaged
        words = f"{type(error).__name__}: {error}"
        raise _refusal(path, " ".join(words.split())[:200]) from error
    images, labels = found["X"], found["y"][:, 0]
    if images.dtype != np.uint8:
        raise _refusal(path, f"the values of X are stored as {images.dtype}, not as uint8")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise _refusal(path, f"its labels run from {labels.min()} to {labels.max()}, not 1 to 10")
    return images.reshape(*IMAGE, -1, order="F"), labels.real.astype(np.int64) % 10


def _check_head(path: Path, listed: Sequence[tuple[str, tuple[int, ...], str]]) -> None:
    """One X and one y, of the same N and as they should be, before any value is read."""
    names = sorted(name for name, _, _ in listed)
    if names.count("X") != 1 or names.count("y") != 1:
        raise _refusal(path, f"it holds {', '.join(names)[:60] or 'nothing'}, not one X and one y")
    of_name = {name: (kind, shape) for name, shape, kind in listed}
    (kind, shape), (y_kind, y_shape) = of_name["X"], of_name["y"]
    count = shape[3] if len(shape) == 4 else 1  # MATLAB leaves the last size out where it is 1
    if kind != "uint8" or shape[:3] != IMAGE or len(shape) > 4 or count < 1:
        raise _refusal(path, f"X is {_text(kind, shape)}, where uint8 32×32×3×N is due")
    if y_kind not in NUMBERS or y_shape != (count, 1):
        raise _refusal(path, f"y is {_text(y_kind, y_shape)}, where numbers {count}×1 are due")
    possible = min(MAX_BYTES, DEFLATE_RATIO * path.stat().st_size)
    if count * IMAGE_BYTES > possible:
        raise _refusal(path, f"it announces {count:,} images, which it cannot hold")


def _blocks(images: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of uint8 [n, 32, 32, 3] from [32, 32, 3, N]."""
    for start in range(0, images.shape[3], BLOCK_IMAGES):
        block = np.moveaxis(images[..., start : start + BLOCK_IMAGES], 3, 0)
        yield np.ascontiguousarray(block)


def _text(kind: str, shape: Sequence[int]) -> str:
    return f"{kind} {'×'.join(map(str, shape))}"


def _refusal(path: Path, fault: str) -> UserError:
    return UserError(
        f"{path} is not a whole SVHN file: {fault}; delete it to have it fetched again, "
        "or put the original in its place"
    )
