"""MNIST, from its IDX files to 32×32 RGB.

Enlarged from 28×28 by Pillow's bilinear resize, which is what torchvision's `Resize(32)` does to an
image (its antialiasing changes nothing when enlarging), and repeated to the three channels.

An IDX file: 0x00 0x00 TYPE RANK, then RANK sizes as big-endian unsigned 32-bit, then the values. Of
the types only unsigned bytes (0x08) are read. The sizes are held against the file before memory of
that size is taken, and compressed files are expanded no further than they promise.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image

from robustmd.domains.arrays import ArrayWriter
from robustmd.errors import UserError

NATIVE, SIZE = 28, 32
BLOCK_IMAGES = 1024
STEMS = {"train": "train", "test": "t10k"}
# Of the decompressed files: the same content is about in several compressions.
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
FILES = tuple(MD5)
UNSIGNED_BYTE = 0x08
MAX_BYTES = 1 << 31  # 40 times MNIST; more cannot be meant
DEFLATE_RATIO = 1032  # no deflate stream expands by more


def md5(path: Path) -> str:
    """Hex md5 of the decompressed file. Raises UserError."""
    digest = hashlib.md5(usedforsecurity=False)
    with _opened(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def build(paths: Mapping[str, Path], writer: ArrayWriter) -> None:
    """Write {train,test}_{images,labels}. paths: by the names of `FILES`. Raises UserError."""
    for split, stem in STEMS.items():
        images_path, labels_path = (paths[name] for name in FILES if name.startswith(stem))
        images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
        if images.shape[1:] != (NATIVE, NATIVE):
            size = "×".join(map(str, images.shape[1:]))
            raise UserError(f"{images_path} holds images of {size}; MNIST's are 28×28")
        if len(images) != len(labels):
            raise UserError(
                f"{images_path} holds {len(images)} images, but {labels_path} {len(labels)} "
                "labels; put files that belong together there"
            )
        if labels.max() > 9:
            raise UserError(f"{labels_path} holds a label {labels.max()}; allowed are 0 to 9")
        writer.add(f"{split}_images", "uint8", (len(images), SIZE, SIZE, 3), _enlarged(images))
        writer.add(f"{split}_labels", "int64", labels.shape, [labels.astype(np.int64)])


def read_idx(path: Path, rank: int) -> np.ndarray:
    """The uint8 values of an IDX file, compressed by gzip (a name ending in .gz) or not.

    rank: the number of sizes expected: 1 for labels, 3 for images.
    Raises UserError if it is not such a file from its first byte to its last.
    """
    with _opened(path) as file:
        head = file.read(4 + 4 * rank)
        if len(head) < 4 + 4 * rank:
            raise _refusal(path, f"it ends after {len(head)} bytes, within its header")
        wanted = bytes([0, 0, UNSIGNED_BYTE, rank])
        if head[:4] != wanted:
            raise _refusal(path, f"it begins with {head[:4].hex()}, where {wanted.hex()} is due")
        shape = struct.unpack(f">{rank}I", head[4:])
        promised, size = math.prod(shape), path.stat().st_size
        possible = size * DEFLATE_RATIO if path.suffix == ".gz" else size - len(head)
        if not 0 < promised <= min(possible, MAX_BYTES):
            sizes = "×".join(map(str, shape))
            raise _refusal(
                path, f"its header promises {sizes} values, which {size:,} bytes cannot hold"
            )
        body = file.read(promised + 1)  # one byte more, to notice a file that goes on
    if len(body) != promised:
        found = "more" if len(body) > promised else f"only {len(body):,}"
        raise _refusal(path, f"its header promises {promised:,} values, but {found} follow")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, decompressed. Raises UserError for what cannot be read within the block."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield file  # type: ignore[misc]  # GzipFile reads like a file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _refusal(path, f"its compressed data are broken ({error})") from error
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from error


def _refusal(path: Path, fault: str) -> UserError:
    return UserError(
        f"{path} is not a whole IDX file: {fault}; delete it to have it fetched again, "
        "or put the original in its place"
    )


def _enlarged(images: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of uint8 [n, 32, 32, 3] from gray images, uint8 [N, 28, 28]."""
    for start in range(0, len(images), BLOCK_IMAGES):
        gray = [
            np.asarray(Image.fromarray(image).resize((SIZE, SIZE), Image.Resampling.BILINEAR))
            for image in images[start : start + BLOCK_IMAGES]
        ]
        yield np.repeat(np.stack(gray)[..., None], 3, axis=3)
