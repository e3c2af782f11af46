"""IDX files: read exactly, or refused in one line."""

import gzip
import hashlib
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustmd.domains import idx
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
    found = idx.read(path, rank=3)
    assert np.array_equal(found.values, np.arange(60, dtype=np.uint8).reshape(5, 4, 3))
    assert found.md5 == hashlib.md5(content).hexdigest()


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
        idx.read(path, rank=3)
    one_line(error, str(path), words, "delete it")


def compressed_variants():
    whole = gzip.compress(HEADER + BODY * 1, mtime=0)
    yield "cut", whole[:-12], "broken"
    yield "no trailer", whole[:-8], "broken"
    yield "wrong CRC", whole[:-8] + b"\0\0\0\0" + whole[-4:], "broken"
    yield "wrong length", whole[:-4] + b"\1\1\0\0", "broken"
    yield "not gzip", HEADER + BODY, "broken"
    yield "empty", b"", "after 0 bytes"
    yield "flipped", whole[:12] + bytes([whole[12] ^ 0xFF]) + whole[13:], "file"
    yield "short", gzip.compress(HEADER + BODY[:-1], mtime=0), "only 59 follow"
    yield "long", gzip.compress(HEADER + BODY + b"\0", mtime=0), "more follow"
    huge = HEADER[:4] + struct.pack(">3I", 10**6, 10**3, 10**3)
    yield "promises 10^12", gzip.compress(huge + bytes(1000), mtime=0), "cannot hold"


@pytest.mark.parametrize(
    ("content", "words"),
    [pytest.param(content, words, id=name) for name, content, words in compressed_variants()],
)
def test_refuses_broken_compression(tmp_path, content, words, one_line):
    path = put(tmp_path, content, "train-images-idx3-ubyte.gz")
    with pytest.raises(UserError) as error:
        idx.read(path, rank=3)
    one_line(error, str(path), words)


def test_bomb_is_expanded_no_further_than_its_promise(tmp_path):
    """100 MB of zeros behind a header that promises 60 bytes: memory stays near the promise."""
    path = put(tmp_path, gzip.compress(HEADER + bytes(10**8)), "bomb.gz")
    tracemalloc.start()
    try:
        with pytest.raises(UserError):
            idx.read(path, rank=3)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_promise_beyond_the_limit_is_refused_even_if_the_ratio_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(idx, "MAX_BYTES", 59)
    with pytest.raises(UserError, match="cannot hold"):
        idx.read(put(tmp_path, HEADER + BODY), rank=3)


def test_missing_file_and_folder(tmp_path, one_line):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UserError) as error:
            idx.read(path, rank=3)
        one_line(error, f"cannot read {path}")


@st.composite
def garbled(draw):
    """A whole file with some of its bytes changed, cut or added."""
    content = bytearray(HEADER + BODY)
    if draw(st.booleans()):
        content = bytearray(gzip.compress(bytes(content), mtime=0))
    for _ in range(draw(st.integers(0, 4))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    content = content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content
    return bytes(content) + draw(st.binary(max_size=3))


@settings(max_examples=300, deadline=None)
@given(content=st.one_of(garbled(), st.binary(max_size=200)), suffix=st.sampled_from(["", ".gz"]))
def test_any_bytes_are_read_right_or_refused(tmp_path_factory, content, suffix):
    path = put(tmp_path_factory.mktemp("fuzz"), content, f"file{suffix}")
    try:
        found = idx.read(path, rank=3)
    except UserError as refusal:
        lines = str(refusal).splitlines()
        assert len(lines) == 1  # either outcome is right, each has its check
        return
    plain = gzip.decompress(content) if suffix else content
    assert plain[:4] == HEADER[:4]
    assert plain[16:] == found.values.tobytes()
    assert struct.unpack(">3I", plain[4:16]) == found.values.shape
