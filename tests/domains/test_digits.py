"""data=digits on small files in the originals' formats."""

import gzip
import hashlib

import numpy as np
import pytest
import scipy.io
from PIL import Image
from refusals import refused

from robustmd.domains import digits
from robustmd.domains.digits import Digits, Svhn


@pytest.fixture
def load(small_data, facts):
    def go(extra=False, verify=False, **how):
        return Digits(svhn=Svhn(extra=extra), verify=verify).load(facts(**how))

    return go


@pytest.fixture
def official(small_data, monkeypatch):
    """Have the small files be the published ones."""
    for path in [*small_data.glob("MNIST/raw/*"), *small_data.glob("svhn/*")]:
        md5s = digits.MD5S["mnist" if "MNIST" in path.parts else "svhn"]
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        name = path.name.removesuffix(".gz")
        monkeypatch.setitem(md5s, name, hashlib.md5(content).hexdigest())


def test_two_domains_in_order(load):
    data = load()
    assert (data.name, data.classes, data.image_size) == ("digits", tuple("0123456789"), (32, 32))
    assert data.names == Digits().names() == ("mnist", "svhn")
    assert [(len(d.train), len(d.test)) for d in data] == [(40, 20), (30, 20)]


def test_extra_follows_the_training_digits(load, small_data):
    plain, extra = load(), load(extra=True)
    assert len(extra["svhn"].train) == 55
    assert np.array_equal(extra["svhn"].train.images[:30], plain["svhn"].train.images)
    arrays = scipy.io.loadmat(small_data / "svhn" / "extra_32x32.mat")
    assert np.array_equal(extra["svhn"].train.images[54], arrays["X"][:, :, :, 24])
    assert extra["svhn"].train.targets[54] == arrays["y"][24, 0] % 10
    assert extra.fingerprint != plain.fingerprint
    assert np.array_equal(extra["svhn"].test.images, plain["svhn"].test.images)


def test_mnist_pixels_are_pillows_bilinear(load, write_mnist, tmp_path):
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
    write_mnist(small_data / "MNIST" / "raw", compress=False, seed=1)
    assert load().fingerprint != before


def test_unofficial_files_are_refused_and_named_or_noted(load, tmp_path):
    with refused("train-images-idx3-ubyte", "not the published", "data.verify=false"):
        load(verify=True)
    assert not list((tmp_path / "cache").glob("digits-*"))
    lines = []
    (note,) = load(say=lines.append).notes
    assert "data.verify=false" in note
    assert note in lines


@pytest.mark.usefixtures("official")
def test_official_files_leave_no_note_and_one_wrong_file_is_found(load, small_data, write_svhn):
    path = small_data / "svhn" / "test_32x32.mat"
    published = path.read_bytes()
    write_svhn(path, 20, seed=9)
    with refused("test_32x32.mat is not the published file of SVHN"):
        load(verify=True)
    path.write_bytes(published)
    data = load(verify=True)
    assert data.notes == ()
    assert load(verify=False).fingerprint == data.fingerprint


@pytest.mark.usefixtures("official")
def test_official_files_are_not_needed_any_more_once_they_are_prepared(load, small_data):
    before = load(verify=True)
    (small_data / "svhn" / "train_32x32.mat").unlink()
    assert load(verify=True).fingerprint == before.fingerprint
    with refused("train_32x32.mat", "no network"):
        load(verify=False)


def test_what_is_missing_is_one_message(facts, tmp_path):
    """Without files and network: what, where to, and what to use meanwhile."""
    folder = str(tmp_path / "none" / "MNIST" / "raw")
    with refused(*digits.MD5S["mnist"], folder, "no network", "data=digits_mini"):
        Digits().load(facts("none"))


def test_torchvision_fetches_what_is_missing(facts, small_data, monkeypatch):
    """Its classes are asked for MNIST and each of SVHN's files, and put them where they belong."""
    from torchvision import datasets

    root = small_data.with_name("fetched")
    asked = []

    def fetch(folder, split=None, download=False):
        asked.append((folder, split, download))
        part = "svhn" if split else "MNIST"
        for path in (small_data / part).rglob(f"{split or ''}*"):
            target = root / path.relative_to(small_data)
            if path.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())

    monkeypatch.setattr(datasets, "MNIST", fetch)
    monkeypatch.setattr(datasets, "SVHN", fetch)
    data = Digits(verify=False).load(facts("fetched"))
    assert [len(domain.train) for domain in data] == [40, 30]
    svhn = root / "svhn"
    assert asked == [(root, None, True), (svhn, "train", True), (svhn, "test", True)]


def header(*sizes):
    return b"\0\0\x08" + bytes([len(sizes)]) + b"".join(n.to_bytes(4, "big") for n in sizes)


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("MNIST/raw/train-images-idx3-ubyte.gz", lambda raw: raw[:1000]),
        ("MNIST/raw/t10k-images-idx3-ubyte.gz", header(20, 27, 28) + bytes(20 * 27 * 28)),
        ("MNIST/raw/t10k-labels-idx1-ubyte.gz", header(20) + bytes([10] * 20)),
        ("svhn/test_32x32.mat", lambda raw: raw[:-500]),
    ],
)
def test_bad_file_is_one_line_and_leaves_no_store(load, small_data, name, spoilt):
    path = small_data / name
    whole = path.read_bytes()
    path.write_bytes(gzip.compress(spoilt) if isinstance(spoilt, bytes) else spoilt(whole))
    for _ in range(2):  # nothing half-made is taken for whole the second time
        with refused(str(path.parent), "delete them"):
            load()
    path.write_bytes(whole)
    assert [len(domain.train) for domain in load()] == [40, 30]


def test_torchvisions_md5s_of_svhn_are_ours():
    from torchvision.datasets import SVHN

    assert {name: md5 for _, name, md5 in SVHN.split_list.values()} == digits.MD5S["svhn"]
