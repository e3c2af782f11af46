"""data=digits on small files in the originals' formats."""

import gzip
import hashlib
import os

import numpy as np
import pytest
import scipy.io
from PIL import Image
from refusals import refused
from robustmd.data_sets import digits
from robustmd.data_sets.digits import Digits, Svhn
from robustmd.domains.published import origin

from robustmd.domains import checksums, published
from robustmd.errors import UserError


@pytest.fixture
def load(small_data, facts, monkeypatch):
    """Files as they are, read in this process: another costs a second (see test_svhn.py)."""
    monkeypatch.setattr(digits, "_read_apart", lambda path, folder: digits._read(path))

    def go(extra=False, verify=False, **how):
        return Digits(svhn=Svhn(extra), verify=verify).load(facts(**how))

    return go


@pytest.fixture
def official(small_data, monkeypatch):
    """Have the small files be the published ones."""
    for path in [*small_data.glob("MNIST/raw/*"), *small_data.glob("svhn/*")]:
        md5s = digits.MNIST if "MNIST" in path.parts else digits.SVHN
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        name = path.name.removesuffix(".gz")
        monkeypatch.setitem(md5s, name, hashlib.md5(content).hexdigest())


def test_two_domains_in_order(load):
    data = load()
    assert data.name == "digits"
    assert data.names == Digits().names() == ("mnist", "svhn")
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
    assert np.array_equal(images[7], np.repeat(expected[..., None], 3, axis=2))


def test_fingerprint_is_of_the_values_not_of_the_files(load, small_data, write_mnist, write_svhn):
    before = load().fingerprint
    for path in small_data.glob("MNIST/raw/*.gz"):
        path.unlink()
    write_mnist(small_data / "MNIST" / "raw", compress=False)
    write_svhn(small_data / "svhn" / "train_32x32.mat", 30, 0, compress=False)
    assert load().fingerprint == before
    for name in ("train_32x32.mat", "test_32x32.mat"):  # where torchvision's users have them
        (small_data / "svhn" / name).rename(small_data / name)
    assert load().fingerprint == before
    write_mnist(small_data / "MNIST" / "raw", compress=False, seed=1)
    assert load().fingerprint != before


def test_second_start_parses_nothing(load, monkeypatch):
    first = load()
    for module, name in ((checksums, "opened"), (digits, "opened"), (digits, "_read")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("a second start must not parse"))
    lines = []
    assert load(say=lines.append).fingerprint == first.fingerprint
    assert not any("preparing" in line for line in lines)


def test_unofficial_files_are_refused_and_named(load, tmp_path):
    with refused("4 of the 4 MNIST files", "train-images-idx3-ubyte", "data.verify=false"):
        load(verify=True)
    assert not list((tmp_path / "cache").glob("*/manifest.json"))


def test_unofficial_files_are_noted_and_refused_again_by_others(load):
    lines = []
    data = load(say=lines.append)
    assert len(data.notes) == 2
    assert "data.verify=false" in data.notes[0]
    assert "train_32x32.mat" in data.notes[1]
    assert set(data.notes) <= set(lines)
    with pytest.raises(UserError, match="not the published"):
        load(verify=True)


@pytest.mark.usefixtures("official")
def test_official_files_leave_no_note_and_one_wrong_file_is_found(load, small_data, write_svhn):
    assert load(verify=True).notes == ()
    write_svhn(small_data / "svhn" / "test_32x32.mat", 20, seed=9)
    with pytest.raises(UserError, match=r"1 of the 2 SVHN files .*test_32x32\.mat"):
        load(verify=True)


@pytest.mark.usefixtures("official")
def test_removed_files_are_not_needed_any_more_if_they_were_official(load, small_data, write_svhn):
    before = load()
    (small_data / "svhn" / "train_32x32.mat").unlink()
    lines = []
    assert load(say=lines.append).fingerprint == before.fingerprint
    assert "SVHN" in lines[0]
    write_svhn(small_data / "svhn" / "train_32x32.mat", 30, seed=9)
    load()
    (small_data / "svhn" / "train_32x32.mat").unlink()
    with pytest.raises(UserError, match=r"train_32x32\.mat"):
        load()


def test_what_is_missing_is_one_message(facts, tmp_path):
    """Without files and network: what, where to, where from, and what to use meanwhile."""
    folder = str(tmp_path / "none" / "MNIST" / "raw")
    with refused(*digits.MNIST, folder, "https://", "no network", "data=digits_mini"):
        Digits().load(facts("none"))


@pytest.mark.usefixtures("official")
def test_missing_files_are_fetched(load, small_data, facts, monkeypatch):
    expected = load(verify=True, cache="a").fingerprint
    asked = []

    def fetched(origin, folder, say):
        asked.append(origin.name)
        folder.mkdir()
        (found,) = small_data.rglob(origin.name)
        return found.rename(folder / origin.name)

    monkeypatch.setattr(published, "_from_any_mirror", fetched)
    assert Digits().load(facts("fetched", "b")).fingerprint == expected
    assert asked == [f"{name}.gz" for name in digits.MNIST] + [digits.TRAIN, digits.TEST]


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
def test_bad_file_is_one_line_and_leaves_no_store(load, small_data, name, spoilt):
    path = small_data / name
    whole = path.read_bytes()
    path.write_bytes(gzip.compress(spoilt) if isinstance(spoilt, bytes) else spoilt(whole))
    for _ in range(2):  # nothing half-made is taken for whole the second time
        with refused(str(path.parent), "delete it"):
            load()
    path.write_bytes(whole)
    assert [len(domain.train) for domain in load()] == [40, 30]


def test_torchvisions_md5s_of_svhn_are_those_of_the_content():
    assert {name: origin(name).md5 for name in digits.SVHN} == digits.SVHN
