"""MNIST's IDX files: read exactly, or refused in one line."""

import functools
import gzip
import hashlib
import struct
import tracemalloc

import numpy as np
import pytest
from refusals import refused

from robustmd.data_sets import digits
from robustmd.domains.checksums import content_md5

HEADER = struct.pack(">HBB", 0, 8, 3) + struct.pack(">3I", 5, 4, 3)
BODY = bytes(range(60))
WHOLE = gzip.compress(HEADER + BODY, mtime=0)


@pytest.mark.parametrize(("name", "content"), [("a", HEADER + BODY), ("a.gz", WHOLE)])
def test_reads_values_and_names_the_decompressed_content(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert np.array_equal(digits.read_idx(path, 3), np.arange(60).reshape(5, 4, 3))
    assert content_md5(path) == hashlib.md5(HEADER + BODY).hexdigest()


def sized(*sizes):
    return HEADER[:4] + struct.pack(">3I", *sizes) + BODY


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        *(
            (name, pack(content), words)
            for name, pack in (("a", bytes), ("a.gz", functools.partial(gzip.compress, mtime=0)))
            for content, words in (
                (b"", "does not begin"),
                (HEADER[:10], "does not begin"),
                (b"\0\0\x0d\x03" + HEADER[4:] + BODY, "does not begin"),
                (b"\0\0\x08\x01" + HEADER[4:] + BODY, "does not begin"),
                (HEADER + BODY[:-1], "(5, 4, 3)"),
                (HEADER + BODY + b"\0", "(5, 4, 3)"),
                (sized(10**6, 10**3, 10**3), "(1000000, 1000, 1000)"),
                (sized(0, 4, 3), "(0, 4, 3)"),
                (sized(*[2**32 - 1] * 3), "not as many values"),
            )
        ),
        ("a", WHOLE, "does not begin"),
        ("a.gz", HEADER + BODY, "broken"),
        ("a.gz", WHOLE[:-12], "broken"),
        ("a.gz", WHOLE[:-8] + b"\0\0\0\0" + WHOLE[-4:], "broken"),
    ],
)
def test_refuses_what_is_not_whole(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with refused(str(path), words, "delete it"):
        digits.read_idx(path, 3)


def test_bomb_is_expanded_no_further_than_its_promise(tmp_path):
    """20 MB of zeros behind a header that promises 60 bytes: memory stays near the promise."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(HEADER + bytes(2 * 10**7)))
    tracemalloc.start()
    try:
        with refused("not as many values"):
            digits.read_idx(path, 3)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with refused(f"cannot read {path}"):
            digits.read_idx(path, 3)
