"""Any bytes as a data file: read right, or refused in one line."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import scipy.io
from faults.fuzzing import damaged, fuzz
from hypothesis import strategies as st
from PIL import Image

from robustmd.data_sets import digits
from robustmd.data_sets.digits import read_idx
from robustmd.domains.decoding import UnreadableError, decode
from robustmd.domains.manifest_csv import list_manifest
from robustmd.errors import UserError

COUNTS = pytest.mark.parametrize("examples", [50, pytest.param(1500, marks=pytest.mark.slow)])
Read = Callable[[], Any]


def read_or_refused(read: Read, *refusals: type[Exception]) -> Any:
    """What was read; None where it was refused, in one line."""
    try:
        return read()
    except refusals as refusal:
        words = str(refusal)
    assert len(words.splitlines()) == 1
    return None


@COUNTS
def test_idx_bytes(tmp_path: Path, examples: int) -> None:
    header = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (3, 4, 4))
    plain = header + bytes(range(48))
    path = {name: tmp_path / f"file{name}" for name in ("", ".gz")}

    def check(given: tuple[str, bytes]) -> None:
        name, content = given
        path[name].write_bytes(content)
        found = read_or_refused(lambda: read_idx(path[name], 3), UserError)
        if isinstance(found, np.ndarray):
            raw = gzip.decompress(content) if name else content
            assert raw[16:] == found.tobytes()

    fuzz(
        examples,
        st.one_of(
            st.tuples(st.just(""), damaged(plain)),
            st.tuples(st.just(".gz"), damaged(gzip.compress(plain, mtime=0))),
            st.tuples(st.just(".gz"), damaged(plain).map(gzip.compress)),
        ),
        check,
    )


@pytest.mark.parametrize("examples", [8, pytest.param(1500, marks=pytest.mark.slow)])
def test_mat_bytes(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "train_32x32.mat"
    wholes = []
    for compress in (False, True):
        arrays = {
            "X": np.arange(32 * 32 * 3 * 2, dtype=np.uint8).reshape(32, 32, 3, 2),
            "y": np.array([[10], [3]], dtype=np.uint8),
        }
        scipy.io.savemat(path, arrays, do_compression=compress)
        wholes.append(path.read_bytes())

    def check(content: bytes) -> None:
        path.write_bytes(content)
        with TemporaryDirectory() as scratch:
            found = read_or_refused(lambda: digits._read_apart(path, Path(scratch, "a")), UserError)
            if found is not None:
                images, labels = found
                assert images.shape == (len(labels), 32, 32, 3)
                assert set(labels.tolist()) <= set(range(10))

    early = [damaged(whole, early=300) for whole in wholes]
    fuzz(examples, st.one_of(*early, *(damaged(whole) for whole in wholes)), check)


@COUNTS
def test_image_bytes(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "image"
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8))
    wholes = []
    for kind in ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"):
        stream = io.BytesIO()
        image.save(stream, kind)
        wholes.append(stream.getvalue())

    def check(content: bytes) -> None:
        path.write_bytes(content)
        found = read_or_refused(lambda: decode(path, 16), UnreadableError)
        if found is not None:
            assert found.pixels.shape == (16, 16, 3)
            assert found.pixels.dtype == np.uint8

    early = [damaged(whole, early=200) for whole in wholes]
    fuzz(examples, st.one_of(*early, damaged(wholes[0]), damaged(wholes[1])), check)


@COUNTS
def test_manifest_bytes(tmp_path: Path, examples: int) -> None:
    manifest = tmp_path / "manifest.csv"
    names = [f"{number}.png" for number in range(8)]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    rows = [f"{name},{'ab'[i % 2]},{'xy'[i // 2 % 2]},train" for i, name in enumerate(names)]
    whole = "\n".join(["path,domain,label,split", *rows, ""]).encode()

    def check(content: bytes) -> None:
        manifest.write_bytes(content)
        listing = read_or_refused(lambda: list_manifest(manifest, outside=False), UserError)
        if listing is not None:
            for file in listing.files:
                assert (listing.folder / file.path).resolve().parent == tmp_path.resolve()

    fuzz(examples, st.one_of(damaged(whole), st.binary(max_size=60)), check)
