"""SVHN's cropped digits, 32×32 RGB as they come, from its MATLAB files.

X is uint8 [32, 32, 3, N], and y [N, 1] holds labels 1…10, where 10 is digit 0. scipy reads them,
but on some garbled files it ends the process by a segmentation fault, which no caller can catch.
So only bytes that are known to be the published ones are read in this process; others are read in
one of their own.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.domain import NON_COMMERCIAL
from robustmd.domains.published import Published, refusal
from robustmd.errors import UserError

TRAIN, EXTRA, TEST = (f"{split}_32x32.mat" for split in ("train", "extra", "test"))
MD5 = {  # torchvision's, which takes seconds to import
    TRAIN: "e26dedcc434d2e4c54c9b2d4a06d8373",
    TEST: "eb5a983be6a315427106f1b164d9cef3",
    EXTRA: "a93ce644f1a588dc4d68dda5feec44a7",
}
IMAGE = (32, 32, 3)
MAX_VALUES = 1 << 31  # of X: the extra digits have 1.6 · 10⁹; more cannot be meant
BLOCK_IMAGES = 1024
CHILD = "import sys; from robustmd.data_sets.svhn import convert; convert(*sys.argv[1:])"


def source(extra: bool, verify: bool) -> Published:
    """extra: the extra digits follow the training digits; verify: files are the published ones."""
    return Published(
        name="svhn",
        title="SVHN",
        md5s={name: md5 for name, md5 in MD5.items() if extra or name != EXTRA},
        folders=("svhn", "SVHN", "."),
        build=partial(build, published=verify),
        origin=f"SVHN cropped digits (Netzer et al. 2011){', train + extra' if extra else ''}",
        licence=NON_COMMERCIAL,
    )


def build(paths: Mapping[str, Path], writer: ArrayWriter, *, published: bool) -> None:
    """Write {train,test}_{images,labels}. Raises UserError."""
    for split, names in (("train", (TRAIN, EXTRA)), ("test", (TEST,))):
        with TemporaryDirectory(dir=writer.folder) as scratch:
            read = [
                _read(paths[name]) if published else _read_apart(paths[name], Path(scratch, name))
                for name in names
                if name in paths
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
        raise refusal(path, f"scipy broke down over it ({last[:200]})")
    return np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """X as it is stored, uint8 [32, 32, 3, N], and the digits 0…9, int64 [N]. Raises UserError."""
    from scipy.io import loadmat, whosmat  # noqa: PLC0415 - not needed once it is prepared

    try:
        with path.open("rb") as file:
            if any(math.prod(shape) > MAX_VALUES for _, shape, _ in whosmat(file)):
                raise refusal(path, "it announces more than it can hold")
            found = loadmat(file, variable_names=("X", "y"))
    except (UserError, MemoryError):
        raise
    except Exception as error:  # scipy raises anything over bytes that are damaged
        words = f"{type(error).__name__}: {error}"
        raise refusal(path, " ".join(words.split())[:200]) from error
    images, labels = (np.asarray(found.get(name)) for name in ("X", "y"))
    if images.ndim == 3:
        images = images[..., None]  # MATLAB leaves the last size out where it is 1
    fits = images.dtype == np.uint8 and images.shape[:3] == IMAGE and images.ndim == 4
    if not fits or labels.dtype.kind not in "iuf" or labels.shape != (images.shape[3], 1):
        there = f"X is {images.dtype} {images.shape} and y {labels.dtype} {labels.shape}"
        raise refusal(path, f"{there}, where uint8 (32, 32, 3, N) and numbers (N, 1) are due")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise refusal(path, f"its labels run from {labels.min()} to {labels.max()}, not 1 to 10")
    return images, labels[:, 0].astype(np.int64) % 10


def _blocks(images: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of uint8 [n, 32, 32, 3] from [32, 32, 3, N]."""
    for start in range(0, images.shape[3], BLOCK_IMAGES):
        block = np.moveaxis(images[..., start : start + BLOCK_IMAGES], 3, 0)
        yield np.ascontiguousarray(block)
