"""Any bytes as a data file: read right, or refused in one line."""

import io
from pathlib import Path

import numpy as np
import pytest
from faults.fuzzing import damaged, fuzz
from hypothesis import strategies as st
from PIL import Image

from robustmd.domains.folder import decode, list_manifest
from robustmd.errors import UserError

COUNTS = pytest.mark.parametrize("examples", [50, pytest.param(1500, marks=pytest.mark.slow)])


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
        (image,) = decode([path], 16)
        if isinstance(image, str):
            assert len(image.splitlines()) == 1
        else:
            assert (image.shape, image.dtype) == ((16, 16, 3), np.uint8)

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
        files, refusal = [], ""
        try:
            files, _ = list_manifest(manifest, [], False)
        except UserError as error:
            refusal = str(error)
        assert len(refusal.splitlines()) <= 1
        for file in files:
            assert (tmp_path / file.path).resolve().parent == tmp_path.resolve()

    fuzz(examples, st.one_of(damaged(whole), st.binary(max_size=60)), check)
