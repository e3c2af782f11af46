"""SVHN's MATLAB files: read exactly, or refused in one line; a crash of scipy is such a line."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.io
from refusals import refused

from robustmd.data_sets import digits
from robustmd.domains.arrays import ArrayWriter, open_array

X = np.zeros((32, 32, 3, 4), np.uint8)
Y = np.array([[1], [2], [3], [10]], np.uint8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train_32x32.mat"


def prepared(path, published=True):
    """(images, labels) that a store is given, of a training file alone."""
    scipy.io.savemat(path.with_name("test_32x32.mat"), {"X": X, "y": Y})
    writer = ArrayWriter(path.parent)
    paths = {name: path.with_name(name) for name in (digits.TRAIN, digits.TEST)}
    digits.build_svhn(paths, writer, published=published)
    return tuple(open_array(path.parent / f"train_{part}.npy") for part in ("images", "labels"))


@pytest.mark.parametrize(("compress", "published"), [(True, True), (False, True), (True, False)])
def test_reads_what_was_written(path, write_svhn, compress, published, monkeypatch):
    monkeypatch.setattr(digits, "BLOCK_IMAGES", 8)
    x, y = write_svhn(path, 33, compress=compress)
    images, labels = prepared(path, published)
    assert np.array_equal(images, np.moveaxis(x, 3, 0))
    assert labels.dtype == np.int64
    assert labels.tolist() == [0 if label == 10 else label for label in y[:, 0]]
    assert not [child for child in path.parent.iterdir() if child.is_dir()]


def test_one_image_and_labels_as_doubles(path):
    """MATLAB leaves the last size out where it is 1; double is its own default type."""
    scipy.io.savemat(path, {"X": X[..., 0], "y": [[10.0]]})
    images, labels = prepared(path)
    assert (images.shape, labels.tolist()) == ((1, 32, 32, 3), [0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"X": X}, "y object"),
        ({"a": X, "b": Y}, "X is object"),
        ({"X": X.astype(float), "y": Y}, "float64"),
        ({"X": X[:31], "y": Y}, "(31, 32, 3, 4)"),
        ({"X": X.transpose(3, 0, 1, 2), "y": Y}, "(4, 32, 32, 3)"),
        ({"X": {"a": X}, "y": Y}, "(1, 1)"),
        ({"X": X, "y": Y[:3]}, "(3, 1)"),
        ({"X": X, "y": "abcd"}, "<U4"),
        *(({"X": X, "y": np.where(Y == 2, bad, Y)}, "not 1 to 10") for bad in (0, 11, 1.5, np.nan)),
    ],
)
def test_refuses_other_variables_types_shapes_and_labels(path, content, words):
    scipy.io.savemat(path, content)
    with refused(str(path), words, "delete it"):
        prepared(path)


def with_a_flipped_bit(raw):
    return raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :]


def announcing_10_9_images(raw):
    sizes = [np.array([32, 32, 3, n], "<i4").tobytes() for n in (30, 10**9)]
    assert raw.count(sizes[0]) == 1
    return raw.replace(*sizes)


@pytest.mark.parametrize(
    ("damage", "published"),
    [
        (with_a_flipped_bit, False),
        (with_a_flipped_bit, True),
        (announcing_10_9_images, True),
        *((lambda raw, cut=cut: raw[: int(cut * len(raw))], True) for cut in (0, 0.01, 0.9, 0.999)),
        (lambda raw: b"\x89HDF\r\n\x1a\n" + bytes(600), True),
        (lambda raw: b"<html>" * 99, True),
    ],
)
def test_damaged_files_are_refused(path, write_svhn, damage, published):
    write_svhn(path, compress=damage is not announcing_10_9_images)
    path.write_bytes(damage(path.read_bytes()))
    with refused(str(path), "cannot be used", "delete it"):
        prepared(path, published)


def test_a_crash_of_the_reader_is_one_line(path, write_svhn, monkeypatch):
    write_svhn(path)
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr(digits, "CHILD", crash)
    with refused(str(path), "scipy broke down", "put the original in its place"):
        prepared(path, published=False)


PEAK = """
import resource, sys
from pathlib import Path
from robustmd.data_sets import digits
from robustmd.domains.arrays import ArrayWriter
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder = Path(sys.argv[1])
paths = {name: folder / name for name in (digits.TRAIN, digits.TEST)}
digits.build_svhn(paths, ArrayWriter(folder), published=True)
unit = 1 if sys.platform == "darwin" else 1024
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="resource is a POSIX module")
def test_peak_memory_while_preparing(tmp_path, write_svhn):
    """At most 2.5 times the array's size, which is 61 MB here."""
    count = 20_000
    write_svhn(tmp_path / "train_32x32.mat", count, compress=False)
    write_svhn(tmp_path / "test_32x32.mat", 10)
    command = [sys.executable, "-c", PEAK, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(found.stdout) < 2.5 * count * 32 * 32 * 3
