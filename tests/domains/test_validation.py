"""Validation splits: a seeded part of each domain's training examples."""

import numpy as np
import pytest

from robustmd.domains import DomainSet
from robustmd.errors import UserError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)

    def images(count):
        return rng.integers(0, 256, (count, 4, 4, 3), dtype=np.uint8)

    return DomainSet.from_tensors(
        {
            name: (images(count), np.arange(count) % 5, images(8), np.arange(8) % 5)
            for name, count in (("a", 50), ("b", 21))
        }
    )


def test_moves_the_share_and_loses_nothing(data):
    held = data.with_validation(0.2, seed=3)
    for before, after in zip(data, held, strict=True):
        count = len(before.train)
        assert len(after.val) == round(0.2 * count)
        rows = np.concatenate([after.train.rows, after.val.rows])
        assert np.array_equal(np.sort(rows), np.arange(count))
        assert np.array_equal(after.val.targets, before.train.labels[after.val.rows])
        assert after.test is before.test


def test_same_seed_same_split_other_seed_other_split(data):
    first, again, other = (data.with_validation(0.2, seed) for seed in (3, 3, 4))
    assert np.array_equal(first["a"].val.rows, again["a"].val.rows)
    assert not np.array_equal(first["a"].val.rows, other["a"].val.rows)
    assert data.fingerprint == first.fingerprint == other.fingerprint  # the data is the same


def test_choice_is_the_domains_own(data):
    """It depends on the seed and the domain's name, not on the other domains."""
    alone = DomainSet("alone", (data["b"],), data.classes, "0" * 64)
    rows = alone.with_validation(0.2, 3)["b"].val.rows
    assert np.array_equal(rows, data.with_validation(0.2, 3)["b"].val.rows)


def test_smallest_and_largest_share_keep_one_on_either_side(data):
    assert len(data.with_validation(1e-9, 0)["a"].val) == 1
    assert len(data.with_validation(0.999, 0)["b"].train) == 1


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0, float("nan")])
def test_share_out_of_range(data, share, one_line):
    with pytest.raises(UserError) as error:
        data.with_validation(share, 0)
    one_line(error, "data.validation", "from 0 to below 1")


def test_second_validation_split_is_refused(data, one_line):
    with pytest.raises(UserError) as error:
        data.with_validation(0.2, 0).with_validation(0.2, 0)
    one_line(error, "domain a", "data.validation=0")


def test_single_example_cannot_be_split(one_line):
    x, y = np.zeros((1, 4, 4, 3), np.uint8), np.zeros(1, int)
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors({"a": (x, y, x, y)}).with_validation(0.5, 0)
    one_line(error, "domain a", "1 training example")
