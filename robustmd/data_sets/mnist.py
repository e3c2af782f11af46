"""MNIST, from its IDX files to 32×32 RGB.

Enlarged from 28×28 by Pillow's bilinear resize, which is what torchvision's `Resize(32)` does to an
image (its antialiasing changes nothing when enlarging), and repeated to the three channels.

An IDX file: 0x00 0x00 TYPE RANK, then RANK sizes as big-endian unsigned 32-bit, then the values. Of
the types only unsigned bytes (0x08) are read, and no more of them than the sizes promise.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.domain import CC_BY_SA_3
from robustmd.domains.published import Published, opened, refusal

BLOCK_IMAGES = 1024
MAX_BYTES = 1 << 30  # 20 times MNIST; more cannot be meant
MD5 = {  # of the decompressed files: the same content is about in several compressions
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def source() -> Published:
    return Published(
        name="mnist",
        title="MNIST",
        md5s=MD5,
        folders=("MNIST/raw",),
        build=build,
        origin="MNIST (LeCun, Cortes, Burges), 28×28 enlarged to 32×32",
        licence=CC_BY_SA_3,
    )


def build(paths: Mapping[str, Path], writer: ArrayWriter) -> None:
    """Write {train,test}_{images,labels}. paths: by the names of `MD5`. Raises UserError."""
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
        writer.add(f"{split}_images", "uint8", (len(images), 32, 32, 3), _enlarged(images))
        writer.add(f"{split}_labels", "int64", labels.shape, [labels.astype(np.int64)])


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


def _enlarged(images: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of uint8 [n, 32, 32, 3] from gray images, uint8 [N, 28, 28]."""
    for start in range(0, len(images), BLOCK_IMAGES):
        gray = [
            np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))
            for image in images[start : start + BLOCK_IMAGES]
        ]
        yield np.repeat(np.stack(gray)[..., None], 3, axis=3)
