"""All of MNIST and real house numbers, compared with readings that share no code with ours."""

import numpy as np
import pytest
import scipy.io

from robustmd.domains.digits import Digits, Svhn
from robustmd.registry import DataFacts

# The distributions of MNIST's labels as everybody knows them.
MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.fixture(scope="module")
def data(real_data, tmp_path_factory):
    folders = {"data": real_data, "cache": tmp_path_factory.mktemp("cache")}
    facts = DataFacts(folders.__getitem__, lambda line: None)
    return Digits(svhn=Svhn(extra=True), verify=False).load(facts)


def test_mnist_is_the_published_one(data):
    assert not any("MNIST" in note for note in data.notes)
    assert len(data["mnist"].train) == 60_000
    assert len(data["mnist"].test) == 10_000
    assert np.bincount(data["mnist"].train.targets).tolist() == MNIST_TRAIN
    assert np.bincount(data["mnist"].test.targets).tolist() == MNIST_TEST


def test_mnist_values_are_those_that_were_first_prepared(data):
    """Fixed once, since published numbers rest on them: bilinear to 32×32, gray in 3 channels."""
    from robustmd.domains.domain_set import array_sha256

    arrays = data["mnist"].train.images, data["mnist"].test.images
    assert [array_sha256(array)[:16] for array in arrays] == [
        "3b8a1dd457ba90aa",
        "a3080529c5b0e94b",
    ]


def test_house_numbers_pixel_by_pixel(real_data, data):
    train, more, test = (
        scipy.io.loadmat(real_data / "svhn" / f"{name}_32x32.mat")
        for name in ("train", "extra", "test")
    )
    svhn = data["svhn"]
    assert (len(svhn.train), len(svhn.test)) == (9_508 + 3_125, 3_205)
    x = np.concatenate([train["X"], more["X"]], axis=3)
    assert np.array_equal(svhn.train.images, np.moveaxis(x, 3, 0))
    assert np.array_equal(svhn.test.images, np.moveaxis(test["X"], 3, 0))
    for split, labels in (("train", np.vstack([train["y"], more["y"]])), ("test", test["y"])):
        counts = np.bincount(labels[:, 0], minlength=11)
        expected = [counts[10], *counts[1:10]]
        assert np.bincount(svhn.splits[split].targets).tolist() == expected
