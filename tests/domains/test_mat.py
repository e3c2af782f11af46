"""SVHN's MATLAB files: read exactly and in little memory, or refused in one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robustmd.domains import mat, mat5
from robustmd.domains.mat5_elements import FormatError
from robustmd.errors import UserError


def images_of(path):
    return np.concatenate(list(mat.image_blocks(path)))


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("count", [1, 2, 33])
def test_reads_what_was_written(tmp_path, write_svhn, compress, count, monkeypatch):
    monkeypatch.setattr(mat, "BLOCK_IMAGES", 8)
    path = tmp_path / "train_32x32.mat"
    x, y = write_svhn(path, count, compress=compress)
    images = images_of(path)
    assert images.flags.c_contiguous
    for i in range(count):
        assert np.array_equal(images[i], x[:, :, :, i])
    assert mat.labels(path).dtype == np.int64
    assert mat.labels(path).tolist() == [0 if label == 10 else label for label in y[:, 0]]


def test_labels_as_doubles_are_read(tmp_path):
    """MATLAB's own default type."""
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[10.0], [3.0]]})
    assert mat.labels(path).tolist() == [0, 3]


X = np.zeros((32, 32, 3, 4), np.uint8)
Y = np.array([[1], [2], [3], [10]], np.uint8)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"X": X}, "it holds X, not"),
        ({"y": Y}, "it holds y, not"),
        ({"a": X, "b": Y}, "it holds a, b, not"),
        ({"X": X.astype(float), "y": Y}, "double"),
        ({"X": X[:31], "y": Y}, "31×32×3×4"),
        ({"X": X[:, :, 0], "y": Y}, "32×32×4"),
        ({"X": X.transpose(3, 0, 1, 2), "y": Y}, "4×32×32×3"),
        ({"X": {"a": X}, "y": Y}, "struct"),
        ({"X": np.array([X, 1], object), "y": Y}, "cell"),
        ({"X": X, "y": {"a": Y}}, "struct"),
        ({"X": X, "y": Y[:3]}, "3×1"),
        ({"X": X, "y": Y.T}, "1×4"),
        ({"X": X, "y": "abcd"}, "char"),
    ],
)
def test_refuses_other_variables_types_and_shapes(tmp_path, content, words, one_line):
    path = tmp_path / "train_32x32.mat"
    scipy.io.savemat(path, content)
    with pytest.raises(UserError) as error:
        mat.labels(path)
    one_line(error, str(path), words, "delete it")


@pytest.mark.parametrize("label", [0, 11, 255, 1.5, float("nan"), -1.0])
def test_labels_out_of_range(tmp_path, label, one_line):
    path = tmp_path / "train_32x32.mat"
    y = Y.astype(float) if isinstance(label, float) else Y.copy()
    y[2] = label
    scipy.io.savemat(path, {"X": X, "y": y})
    with pytest.raises(UserError) as error:
        mat.labels(path)
    one_line(error, str(path), "not 1 to 10")


def test_announced_number_is_held_against_the_files_size(tmp_path, one_line):
    """The sizes in the header are raised to 10^9 images: refused before anything is allocated."""
    path = tmp_path / "train_32x32.mat"
    scipy.io.savemat(path, {"X": X, "y": Y})
    sizes = np.array([32, 32, 3, 4], "<i4").tobytes()
    content = path.read_bytes()
    assert content.count(sizes) == 1
    hostile = np.array([32, 32, 3, 10**9], "<i4").tobytes()
    path.write_bytes(content.replace(sizes, hostile))
    with pytest.raises(UserError) as error:
        mat.labels(path)
    one_line(error, "other than its sizes need")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("compress", [True, False])
def test_truncated(tmp_path, write_svhn, share, compress, one_line):
    path = tmp_path / "train_32x32.mat"
    write_svhn(path, compress=compress)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError) as error:
        (images_of(path), mat.labels(path))
    one_line(error, str(path))


@pytest.mark.parametrize("content", [b"\x89HDF\r\n\x1a\n" + bytes(600), b"<html>" * 99, bytes(500)])
def test_something_else(tmp_path, content, one_line):
    path = tmp_path / "train_32x32.mat"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        mat.labels(path)
    one_line(error, str(path))


def test_missing(tmp_path, one_line):
    with pytest.raises(UserError) as error:
        mat.labels(tmp_path / "train_32x32.mat")
    one_line(error, "cannot read", "No such file")


def test_bit_that_flips_in_compressed_pixels_is_noticed(tmp_path, write_svhn, one_line):
    """zlib's checksum at the end of the values is checked."""
    path = tmp_path / "train_32x32.mat"
    write_svhn(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        images_of(path)
    one_line(error, "compressed data")


def test_file_that_changes_between_its_parts(tmp_path, write_svhn):
    path = tmp_path / "train_32x32.mat"
    write_svhn(path, 30)
    (before,) = (v for v in mat5.variables(path) if v.name == "X")
    write_svhn(path, 31)
    with pytest.raises(FormatError, match="changed"):
        list(mat5.blocks(path, before, 100))


MATLABS_OWN = Path(scipy.io.__file__).parent / "matlab" / "tests" / "data"


@pytest.mark.parametrize("version", ["6.1_SOL2", "6.5.1_GLNX86", "7.1_GLNX86", "7.4_GLNX86"])
@pytest.mark.parametrize("name", ["testdouble", "testmatrix", "testminus", "test3dmatrix"])
def test_files_that_matlab_itself_wrote(name, version):
    """Those that scipy keeps for its own tests, read by both; compressed since version 7."""
    path = MATLABS_OWN / f"{name}_{version}.mat"
    if not path.exists():
        pytest.skip("this scipy was installed without its tests' files")
    if version.endswith("SOL2"):
        with pytest.raises(FormatError, match="little-endian"):
            mat5.variables(path)
        return
    (variable,) = mat5.variables(path)
    values = np.concatenate(list(mat5.blocks(path, variable, 7)))
    expected = scipy.io.loadmat(path)[name]
    assert np.array_equal(values.reshape(variable.shape, order="F"), expected)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), compress=st.booleans())
def test_garbled_bytes_are_refused_or_still_a_file(tmp_path, write_svhn, data, compress):
    path = tmp_path / "train_32x32.mat"
    write_svhn(path, 2, compress=compress)
    content = bytearray(path.read_bytes())
    # The headers are where garbled bytes do harm; beyond them are only pixels.
    early = st.integers(0, min(300, len(content) - 1))
    for place in data.draw(st.lists(early, min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        images, labels = images_of(path), mat.labels(path)
    except UserError as refusal:
        lines = str(refusal).splitlines()
        assert len(lines) == 1  # either outcome is right, each has its check
        return
    assert images.shape == (len(labels), 32, 32, 3)
    assert set(labels.tolist()) <= set(range(10))


PEAK = """
import json, resource, sys
from pathlib import Path
from robustmd.domains import svhn
from robustmd.domains.arrays import ArrayWriter
unit = 1 if sys.platform == "darwin" else 1024
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
folder = Path(sys.argv[1])
svhn.build({name: folder / name for name in svhn.FILES}, ArrayWriter(folder))
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="resource is a POSIX module")
def test_peak_memory_while_preparing(tmp_path, write_svhn):
    """Less than half of the array's size, which is 61 MB here; allowed are 2.5 times."""
    count = 20_000
    write_svhn(tmp_path / "train_32x32.mat", count, compress=False)
    write_svhn(tmp_path / "test_32x32.mat", 10)
    command = [sys.executable, "-c", PEAK, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) < 0.5 * count * mat.IMAGE_BYTES
    images = np.load(tmp_path / "train_images.npy", mmap_mode="r")
    assert images.shape == (count, 32, 32, 3)
