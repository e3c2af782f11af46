"""data=digits on small files in the originals' formats."""

import gzip
import hashlib
import os
from functools import partial

import numpy as np
import pytest
import scipy.io
from PIL import Image
from robustmd.domains.digits import CONTENT_MD5

from robustmd.domains import digits, mnist, svhn
from robustmd.domains.fetch import Origin, origin
from robustmd.errors import UserError


@pytest.fixture
def load(small_data, tmp_path, monkeypatch):
    """Files as they are, read in this process: another costs a second (see test_svhn.py)."""
    monkeypatch.setattr(svhn, "_read_apart", lambda path, folder: svhn._read(path))
    return partial(digits.load, small_data, tmp_path / "cache", verify=False, fetch=False)


def content_md5(path):
    content = path.read_bytes()
    return hashlib.md5(gzip.decompress(content) if path.suffix == ".gz" else content).hexdigest()


@pytest.fixture
def official(small_data, monkeypatch):
    """Have the small files be the published ones."""
    for path in [*small_data.glob("MNIST/raw/*"), *small_data.glob("svhn/*")]:
        monkeypatch.setitem(CONTENT_MD5, path.name.removesuffix(".gz"), content_md5(path))


def test_two_domains_in_order(load):
    data = load()
    assert data.name == "digits"
    assert data.names == ("mnist", "svhn")
    assert data.classes == tuple("0123456789")
    assert data.image_size == (32, 32)
    assert [(len(d.train), len(d.test)) for d in data] == [(40, 20), (30, 20)]
    assert all(d.source and d.licence for d in data)


def test_extra_follows_the_training_digits(load, small_data):
    plain, extra = load(), load(extra=True)
    assert len(extra["svhn"].train) == 55
    assert np.array_equal(extra["svhn"].train.images[:30], plain["svhn"].train.images)
    x = scipy.io.loadmat(small_data / "svhn" / "extra_32x32.mat")["X"]
    assert np.array_equal(extra["svhn"].train.images[54], x[:, :, :, 24])
    assert extra.fingerprint != plain.fingerprint
    assert extra["svhn"].test.images.tobytes() == plain["svhn"].test.images.tobytes()


def test_mnist_pixels_are_pillows_bilinear(load, small_data, write_mnist, tmp_path):
    arrays = write_mnist(tmp_path / "again")
    images = load()["mnist"].test.images
    gray = Image.fromarray(arrays["t10k-images-idx3-ubyte"][7].astype(np.uint8))
    expected = np.asarray(gray.resize((32, 32), Image.Resampling.BILINEAR))
    for channel in range(3):
        assert np.array_equal(images[7, :, :, channel], expected)


def test_fingerprint_is_of_the_values_not_of_the_files(load, small_data, write_mnist, write_svhn):
    before = load().fingerprint
    for path in small_data.glob("MNIST/raw/*.gz"):
        path.unlink()
    write_mnist(small_data / "MNIST" / "raw", compress=False)
    write_svhn(small_data / "svhn" / "train_32x32.mat", 30, 0, compress=False)
    assert load().fingerprint == before
    write_mnist(small_data / "MNIST" / "raw", compress=False, seed=1)
    assert load().fingerprint != before


def test_svhn_is_found_where_torchvision_users_have_it(small_data, tmp_path):
    expected = digits.load(small_data, tmp_path / "a", verify=False).fingerprint
    for name in ("train_32x32.mat", "test_32x32.mat"):
        (small_data / "svhn" / name).rename(small_data / name)
    assert digits.load(small_data, tmp_path / "b", verify=False).fingerprint == expected


def test_second_start_parses_nothing(load, monkeypatch):
    first = load()

    def parsed(*_, **__):
        raise AssertionError("a second start must not parse")

    for module, name in ((mnist, "_opened"), (svhn, "_read"), (svhn, "file_md5")):
        monkeypatch.setattr(module, name, parsed)
    lines = []
    assert load(say=lines.append).fingerprint == first.fingerprint
    assert not any("preparing" in line for line in lines)


def test_unofficial_files_are_refused_and_named(small_data, tmp_path, one_line):
    with pytest.raises(UserError) as error:
        digits.load(small_data, tmp_path / "cache", fetch=False)
    one_line(error, "4 of the 4 MNIST files", "train-images-idx3-ubyte", "data.verify=false")
    assert not list((tmp_path / "cache").glob("*/manifest.json"))


def test_unofficial_files_are_noted_and_refused_again_by_others(load, small_data, tmp_path):
    lines = []
    data = load(say=lines.append)
    assert len(data.notes) == 2
    assert "data.verify=false" in data.notes[0]
    assert "train_32x32.mat" in data.notes[1]
    assert set(data.notes) <= set(lines)
    with pytest.raises(UserError, match="not the published"):
        digits.load(small_data, tmp_path / "cache", fetch=False)


@pytest.mark.usefixtures("official")
def test_official_files_leave_no_note_and_one_wrong_file_is_found(small_data, tmp_path, write_svhn):
    cache = tmp_path / "cache"
    assert digits.load(small_data, cache, fetch=False).notes == ()
    write_svhn(small_data / "svhn" / "test_32x32.mat", 20, seed=9)
    with pytest.raises(UserError, match=r"1 of the 2 SVHN files .*test_32x32\.mat"):
        digits.load(small_data, cache, fetch=False)


@pytest.mark.usefixtures("official")
def test_removed_official_files_are_not_needed_any_more(small_data, tmp_path):
    cache, lines = tmp_path / "cache", []
    before = digits.load(small_data, cache, fetch=False)
    (small_data / "svhn" / "train_32x32.mat").unlink()
    after = digits.load(small_data, cache, fetch=False, say=lines.append)
    assert after.fingerprint == before.fingerprint
    assert "SVHN" in lines[0]


def test_removed_unofficial_files_are_missed(load, small_data):
    load()
    (small_data / "svhn" / "train_32x32.mat").unlink()
    with pytest.raises(UserError, match=r"train_32x32\.mat"):
        load()


def test_everything_missing_is_one_message(tmp_path, monkeypatch, one_line):
    """No files and no network: what, where to, where from, and what to use meanwhile."""
    unreachable = "http://127.0.0.1:1/mirror/"
    monkeypatch.setattr(
        digits, "origin", lambda name: Origin(name, (unreachable + name,), "0" * 32)
    )
    with pytest.raises(UserError) as error:
        digits.load(tmp_path / "data", tmp_path / "cache", extra=True)
    one_line(
        error,
        *(mnist.FILES + svhn.FILES),
        svhn.EXTRA,
        str(tmp_path / "data" / "MNIST" / "raw"),
        str(tmp_path / "data" / "svhn"),
        unreachable,
        "Connection refused",
        "data=digits_mini",
    )


def test_fetching_that_is_switched_off(tmp_path, one_line):
    with pytest.raises(UserError) as error:
        digits.load(tmp_path / "data", tmp_path / "cache", fetch=False)
    one_line(error, "fetching is switched off", "train-images-idx3-ubyte.gz")
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("official")
def test_missing_files_are_fetched(small_data, tmp_path, monkeypatch):
    expected = digits.load(small_data, tmp_path / "a").fingerprint
    asked = []

    def fetch_file(place, folder, say):
        asked.append(place.name)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / place.name
        path.write_bytes((small_data / folder.relative_to(data) / place.name).read_bytes())
        return path

    data = tmp_path / "fetched"
    monkeypatch.setattr(digits, "fetch_file", fetch_file)
    assert digits.load(data, tmp_path / "b").fingerprint == expected
    assert asked == [f"{name}.gz" for name in mnist.FILES] + list(svhn.FILES)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_data_folder_may_be_read_only(load, small_data):
    folders = [small_data, *(path for path in small_data.rglob("*") if path.is_dir())]
    before = sorted(small_data.rglob("*"))
    for folder in folders:
        folder.chmod(0o555)
    try:
        load()
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert sorted(small_data.rglob("*")) == before


def header(*sizes):
    return b"\0\0\x08" + bytes([len(sizes)]) + b"".join(n.to_bytes(4, "big") for n in sizes)


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("MNIST/raw/train-images-idx3-ubyte.gz", lambda raw: raw[:1000]),
        ("MNIST/raw/t10k-images-idx3-ubyte.gz", header(20, 27, 28) + bytes(20 * 27 * 28)),
        ("MNIST/raw/t10k-labels-idx1-ubyte.gz", header(20) + bytes([10] * 20)),
        ("MNIST/raw/t10k-labels-idx1-ubyte.gz", header(19) + bytes(19)),
        ("svhn/test_32x32.mat", lambda raw: raw[:-500]),
    ],
)
def test_bad_file_is_one_line_and_leaves_no_store(load, small_data, name, spoilt, one_line):
    path = small_data / name
    whole = path.read_bytes()
    path.write_bytes(gzip.compress(spoilt) if isinstance(spoilt, bytes) else spoilt(whole))
    for _ in range(2):  # nothing half-made is taken for whole the second time
        with pytest.raises(UserError) as error:
            load()
        one_line(error, str(path))
    path.write_bytes(whole)
    assert [len(domain.train) for domain in load()] == [40, 30]


def test_torchvisions_md5s_of_svhn_are_those_of_the_content():
    assert {name: origin(name).md5 for name in svhn.MD5} == svhn.MD5
