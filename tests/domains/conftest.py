"""Small files in the originals' formats, and no network."""

import gzip
import struct
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from robustmd.registry import DataFacts


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refused(*_, **__):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refused)


@pytest.fixture
def facts(tmp_path) -> Callable[..., DataFacts]:
    """What a data set is given: its folders, by name in tmp_path, and where its lines go."""

    def make(data: str = "data", cache: str = "cache", say=lambda line: None) -> DataFacts:
        return DataFacts({"data": tmp_path / data, "cache": tmp_path / cache}.__getitem__, say)

    return make


def idx_bytes(values: np.ndarray) -> bytes:
    """An IDX file's bytes, written from the format's description alone."""
    header = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    return header + values.astype(np.uint8).tobytes()


@pytest.fixture
def write_mnist():
    """Write MNIST's four files with random images into a folder; returns the arrays."""

    def write(folder: Path, train: int = 40, test: int = 20, seed: int = 0, compress: bool = True):
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(seed)
        arrays = {}
        for stem, count in (("train", train), ("t10k", test)):
            arrays[f"{stem}-images-idx3-ubyte"] = rng.integers(0, 256, (count, 28, 28))
            arrays[f"{stem}-labels-idx1-ubyte"] = np.arange(count) % 10
        for name, values in arrays.items():
            if compress:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx_bytes(values)))
            else:
                (folder / name).write_bytes(idx_bytes(values))
        return arrays

    return write


@pytest.fixture
def write_svhn():
    """Write an SVHN file with random images; returns X [32, 32, 3, N] and y [N, 1]."""

    def write(path: Path, count: int = 30, seed: int = 0, compress: bool = True):
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
        y = (np.arange(count, dtype=np.uint8) % 10 + 1)[:, None]
        scipy.io.savemat(path, {"X": x, "y": y}, do_compression=compress)
        return x, y

    return write


@pytest.fixture
def small_data(tmp_path, write_mnist, write_svhn):
    """A data folder with small MNIST and SVHN files, as torchvision lays them out."""
    folder = tmp_path / "data"
    write_mnist(folder / "MNIST" / "raw")
    for seed, (name, count) in enumerate([("train", 30), ("test", 20), ("extra", 25)]):
        write_svhn(folder / "svhn" / f"{name}_32x32.mat", count, seed)
    return folder
