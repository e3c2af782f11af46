"""SVHN's cropped digits, from its MATLAB files; they are 32×32 RGB as they come."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from robustmd.domains import mat
from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import file_md5
from robustmd.errors import UserError

FILES = ("train_32x32.mat", "test_32x32.mat")
EXTRA = "extra_32x32.mat"


def md5(path: Path) -> str:
    """Hex md5 of the file. Raises UserError if it cannot be read."""
    try:
        return file_md5(path)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error


def build(paths: Mapping[str, Path], writer: ArrayWriter) -> None:
    """Write {train,test}_{images,labels}. paths: by the names of `FILES`; the extra digits follow
    the training digits where their file is among them. Raises UserError.

    No more than one file's images are in memory at a time.
    """
    train, test = FILES
    splits = {"train": [train, EXTRA] if EXTRA in paths else [train], "test": [test]}
    for split, names in splits.items():
        files = [paths[name] for name in names]
        labels = np.concatenate([mat.labels(file) for file in files])
        images = chain.from_iterable(map(mat.image_blocks, files))
        shape = (len(labels), mat.SIDE, mat.SIDE, mat.CHANNELS)
        writer.add(f"{split}_images", "uint8", shape, images)
        writer.add(f"{split}_labels", "int64", labels.shape, [labels])
