"""MNIST's IDX files: read exactly, or refused in one line."""

import gzip
import hashlib
import struct
import tracemalloc

import numpy as np
import pytest

from robustmd.domains import mnist
from robustmd.errors import UserError

HEADER = struct.pack(">HBB", 0, 8, 3) + struct.pack(">3I", 5, 4, 3)
BODY = bytes(range(60))


def put(folder, content, name="train-images-idx3-ubyte"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_reads_values_and_names_the_decompressed_content(tmp_path, compressed):
    content = HEADER + BODY
    path = (
        put(tmp_path, gzip.compress(content, mtime=0), "a.gz")
        if compressed
        else put(tmp_path, content)
    )
    found = mnist.read_idx(path, 3)
    assert np.array_equal(found, np.arange(60, dtype=np.uint8).reshape(5, 4, 3))
    assert mnist.md5(path) == hashlib.md5(content).hexdigest()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "after 0 bytes"),
        (HEADER[:10], "after 10 bytes"),
        (HEADER + BODY[:-1], "cannot hold"),
        (HEADER + BODY + b"\0", "more follow"),
        (b"\0\0\x0d\x03" + HEADER[4:] + BODY, "00000d03"),
        (b"\0\0\x08\x01" + HEADER[4:] + BODY, "00000801"),
        (b"\1\0\x08\x03" + HEADER[4:] + BODY, "01000803"),
        (gzip.compress(HEADER + BODY, mtime=0), "1f8b"),
        (HEADER[:4] + struct.pack(">3I", 10**6, 10**3, 10**3), "1000000×1000×1000"),
        (HEADER[:4] + struct.pack(">3I", 0, 4, 3), "0×4×3"),
        (HEADER[:4] + struct.pack(">3I", *[2**32 - 1] * 3), "cannot hold"),
    ],
)
def test_refuses_what_is_not_whole(tmp_path, content, words, one_line):
    path = put(tmp_path, content)
    with pytest.raises(UserError) as error:
        mnist.read_idx(path, 3)
    one_line(error, str(path), words, "delete it")


WHOLE = gzip.compress(HEADER + BODY, mtime=0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WHOLE[:-12], "broken"),
        (WHOLE[:-8] + b"\0\0\0\0" + WHOLE[-4:], "broken"),
        (HEADER + BODY, "broken"),
        (b"", "after 0 bytes"),
        (gzip.compress(HEADER + BODY[:-1]), "only 59 follow"),
        (gzip.compress(HEADER + BODY + b"\0"), "more follow"),
        (gzip.compress(HEADER[:4] + struct.pack(">3I", *[10**4] * 3)), "cannot hold"),
    ],
)
def test_refuses_broken_compression(tmp_path, content, words, one_line):
    path = put(tmp_path, content, "train-images-idx3-ubyte.gz")
    with pytest.raises(UserError) as error:
        mnist.read_idx(path, 3)
    one_line(error, str(path), words)


def test_bomb_is_expanded_no_further_than_its_promise(tmp_path):
    """100 MB of zeros behind a header that promises 60 bytes: memory stays near the promise."""
    path = put(tmp_path, gzip.compress(HEADER + bytes(10**8)), "bomb.gz")
    tracemalloc.start()
    try:
        with pytest.raises(UserError):
            mnist.read_idx(path, 3)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_missing_file_and_folder(tmp_path, one_line):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UserError) as error:
            mnist.read_idx(path, 3)
        one_line(error, f"cannot read {path}")
