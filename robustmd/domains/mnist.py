"""MNIST, from its IDX files to 32×32 RGB.

Enlarged from 28×28 by Pillow's bilinear resize, which is what torchvision's `Resize(32)` does to an
image (its antialiasing changes nothing when enlarging), and repeated to the three channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from robustmd.domains import idx
from robustmd.domains.arrays import ArrayWriter
from robustmd.errors import UserError

NATIVE, SIZE = 28, 32
BLOCK_IMAGES = 1024
STEMS = {"train": "train", "test": "t10k"}
FILES = tuple(
    f"{stem}-{part}-ubyte" for stem in STEMS.values() for part in ("images-idx3", "labels-idx1")
)


def md5(path: Path) -> str:
    """Hex md5 of the decompressed file. Raises UserError if it is no whole IDX file."""
    return idx.read(path, rank=_rank(path)).md5


def build(paths: Mapping[str, Path], writer: ArrayWriter) -> None:
    """Write {train,test}_{images,labels}. paths: by the names of `FILES`. Raises UserError."""
    for split, stem in STEMS.items():
        images_path, labels_path = (paths[name] for name in FILES if name.startswith(stem))
        images, labels = _read(images_path), _read(labels_path)
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


def _rank(path: Path) -> int:
    return 3 if "idx3" in path.name else 1


def _read(path: Path) -> np.ndarray:
    return idx.read(path, rank=_rank(path)).values


def _enlarged(images: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of uint8 [n, 32, 32, 3] from gray images, uint8 [N, 28, 28]."""
    for start in range(0, len(images), BLOCK_IMAGES):
        gray = [
            np.asarray(Image.fromarray(image).resize((SIZE, SIZE), Image.Resampling.BILINEAR))
            for image in images[start : start + BLOCK_IMAGES]
        ]
        yield np.repeat(np.stack(gray)[..., None], 3, axis=3)
