"""All of MNIST and real house numbers, compared with readings that share no code with ours."""

import numpy as np
import pytest
import scipy.io

from robustmd.domains.digits import Digits, Svhn
from robustmd.registry import DataFacts


@pytest.fixture(scope="module")
def data(real_data, tmp_path_factory):
    folders = {"data": real_data, "cache": tmp_path_factory.mktemp("cache")}
    facts = DataFacts(folders.__getitem__, lambda line: None)
    return Digits(svhn=Svhn(extra=True), verify=False).load(facts)


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
    x = np.concatenate([train["X"], more["X"]], axis=3)
    assert np.array_equal(svhn.train.images, np.moveaxis(x, 3, 0))
    assert np.array_equal(svhn.test.images, np.moveaxis(test["X"], 3, 0))
    for split, labels in (("train", np.vstack([train["y"], more["y"]])), ("test", test["y"])):
        counts = np.bincount(labels[:, 0], minlength=11)
        expected = [counts[10], *counts[1:10]]
        assert np.bincount(svhn.splits[split].targets).tolist() == expected
