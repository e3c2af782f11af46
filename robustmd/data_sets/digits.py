"""`data=digits`: MNIST against SVHN, the paper's second experiment, as 32×32 RGB.

MNIST is enlarged from 28×28 by Pillow's bilinear resize, which is what torchvision's `Resize(32)`
does to an image (its antialiasing changes nothing when enlarging), and repeated to three channels.
Its IDX files: 0x00 0x00 TYPE RANK, then RANK sizes as big-endian unsigned 32-bit, then the values.
Of the types only unsigned bytes (0x08) are read, and no more of them than the sizes promise.

SVHN's MATLAB files hold X, uint8 [32, 32, 3, N], and y [N, 1], labels 1…10, where 10 is digit 0.
scipy reads them, but on some garbled files it ends the process by a segmentation fault, which no
caller can catch. So only bytes that are known to be the published ones are read in this process;
others are read in one of their own.
"""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import opened, refusal
from robustmd.domains.domain import CC_BY_SA_3, NON_COMMERCIAL, DomainSet
from robustmd.domains.published import Published
from robustmd.errors import UserError
from robustmd.registry import DataFacts, Settings, data, key

BYTES = 257_910_900  # MNIST, and SVHN without its extra digits
CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 32
BLOCK_IMAGES = 1024
MAX_BYTES = 1 << 30  # of an IDX file, 20 times MNIST; more cannot be meant
MNIST = {  # md5 of the decompressed files: the same content is about in several compressions
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
MAX_VALUES = 1 << 31  # of X: the extra digits have 1.6 · 10⁹; more cannot be meant
TRAIN, EXTRA, TEST = (f"{split}_32x32.mat" for split in ("train", "extra", "test"))
SVHN = {  # md5; torchvision's, which takes seconds to import
    TRAIN: "e26dedcc434d2e4c54c9b2d4a06d8373",
    TEST: "eb5a983be6a315427106f1b164d9cef3",
    EXTRA: "a93ce644f1a588dc4d68dda5feec44a7",
}
CHILD = "import sys; from robustmd.data_sets.digits import convert; convert(*sys.argv[1:])"


@dataclass
class Svhn:
    """The keys of SVHN."""

    extra: bool = key(False, help="train on its extra part too, as in the paper: 604,388 digits")


@data("digits", order=1)
class Digits(Settings):
    """MNIST against SVHN."""

    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = key(True, help="false: take files that are not the official bytes, with a note")

    def names(self) -> tuple[str, ...]:
        return ("mnist", "svhn")

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        there = {s.title: len(s.found(folder)) == len(s.md5s) for s in self._sources()}
        return "; ".join(f"{s.title} {s.licence}" for s in self._sources()), BYTES, there

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "mnist" (60,000 + 10,000) and "svhn" (73,257 + 26,032). Raises UserError."""
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at."""
        found, notes = [], []
        for source in (source for source in self._sources() if source.name in domains):
            domain, strangers = source.load(facts, self.verify)
            found.append(domain)
            notes += strangers
        return DomainSet.of("digits", found, CLASSES, notes, facts.say)

    def _sources(self) -> tuple[Published, Published]:
        extra = self.svhn.extra
        return (
            Published(
                name="mnist",
                title="MNIST",
                md5s=MNIST,
                folders=("MNIST/raw",),
                build=build_mnist,
                origin="MNIST (LeCun, Cortes, Burges), 28×28 enlarged to 32×32",
                licence=CC_BY_SA_3,
            ),
            Published(
                name="svhn",
                title="SVHN",
                md5s={name: md5 for name, md5 in SVHN.items() if extra or name != EXTRA},
                folders=("svhn", "SVHN", "."),
                build=partial(build_svhn, published=self.verify),
                origin=f"SVHN cropped digits (Netzer et al. 2011){', train + extra' * extra}",
                licence=NON_COMMERCIAL,
            ),
        )


# --- MNIST ---------------------------------------------------------------------------------------


def build_mnist(paths: Mapping[str, Path], writer: ArrayWriter) -> None:
    """Write {train,test}_{images,labels}. Raises UserError."""
    for split, stem in (("train", "train"), ("test", "t10k")):
        images_path = paths[f"{stem}-images-idx3-ubyte"]
        images, labels = read_idx(images_path, 3), read_idx(paths[f"{stem}-labels-idx1-ubyte"], 1)
        if images.shape != (len(labels), 28, 28) or labels.max() > 9:
            shape = "×".join(map(str, images.shape))
            raise refusal(
                images_path,
                f"images {shape} and {len(labels)} labels up to {labels.max()} are not N×28×28 and "
                "N up to 9",
            )
        writer.add_examples(split, map(_enlarged, _blocks(images)), labels, SIDE)


def read_idx(path: Path, rank: int) -> np.ndarray:
    """The uint8 values of an IDX file, compressed by gzip (a name ending in .gz) or not.

    rank: the number of sizes expected: 1 for labels, 3 for images.
    Raises UserError if it is not such a file from its first byte to its last.
    """
    with opened(path) as file:
        head = file.read(4 + 4 * rank)
        if len(head) < 4 + 4 * rank or head[:4] != bytes([0, 0, 8, rank]):
            raise refusal(path, "it does not begin as an IDX file of unsigned bytes does")
        shape = struct.unpack(f">{rank}I", head[4:])
        promised = math.prod(shape)
        body = file.read(min(promised, MAX_BYTES) + 1)  # one more, to notice a file that goes on
    if not 0 < promised == len(body):
        raise refusal(path, f"the IDX header's {shape} are not as many values as follow")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape)


def _enlarged(images: np.ndarray) -> np.ndarray:
    """uint8 [n, 32, 32, 3] from gray images, uint8 [n, 28, 28]."""
    pictures = (Image.fromarray(image) for image in images)
    gray = [np.asarray(one.resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for one in pictures]
    return np.repeat(np.stack(gray)[..., None], 3, axis=3)


# --- SVHN ----------------------------------------------------------------------------------------


def build_svhn(paths: Mapping[str, Path], writer: ArrayWriter, *, published: bool) -> None:
    """Write {train,test}_{images,labels}; the extra digits follow the training digits.

    published: whether the bytes are. Raises UserError.
    """
    for split, names in (("train", (TRAIN, EXTRA)), ("test", (TEST,))):
        with TemporaryDirectory(dir=writer.folder) as scratch:
            read = [
                _read(paths[name]) if published else _read_apart(paths[name], Path(scratch, name))
                for name in names
                if name in paths
            ]
            labels = np.concatenate([digits for _, digits in read])
            blocks = (block for images, _ in read for block in _blocks(images))
            writer.add_examples(split, blocks, labels, SIDE)
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
    """Images, a view uint8 [N, 32, 32, 3], and digits 0…9, int64 [N]. Raises UserError."""
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
    fits = images.dtype == np.uint8 and images.shape[:3] == (SIDE, SIDE, 3) and images.ndim == 4
    if not fits or labels.dtype.kind not in "iuf" or labels.shape != (images.shape[3], 1):
        there = f"X is {images.dtype} {images.shape} and y {labels.dtype} {labels.shape}"
        raise refusal(path, f"{there}, where uint8 (32, 32, 3, N) and numbers (N, 1) are due")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise refusal(path, f"its labels run from {labels.min()} to {labels.max()}, not 1 to 10")
    return np.moveaxis(images, 3, 0), labels[:, 0].astype(np.int64) % 10


def _blocks(images: np.ndarray) -> list[np.ndarray]:
    """Views of some of the images at a time."""
    return np.array_split(images, range(BLOCK_IMAGES, len(images), BLOCK_IMAGES))
