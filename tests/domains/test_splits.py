"""Seeded draws: the validation split, and the test split of a domain without one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from robustmd.domains import Domain, DomainSet, Split, Views
from robustmd.domains.domain_set import seeded_split
from robustmd.errors import UserError


def images(count):
    return np.random.default_rng(count).integers(0, 256, (count, 4, 4, 3), dtype=np.uint8)


@pytest.fixture
def data():
    return DomainSet.from_tensors(
        {
            name: (images(count), np.arange(count) % 5, images(8), np.arange(8) % 5)
            for name, count in (("a", 50), ("b", 21))
        }
    )


def test_moves_the_share_and_loses_nothing(data):
    held = data.with_validation(0.2, seed=3)
    assert held.fingerprint == data.fingerprint  # the data is the same
    for before, after in zip(data, held, strict=True):
        count = len(before.train)
        assert len(after.val) == round(0.2 * count)
        rows = np.concatenate([after.train.rows, after.val.rows])
        assert np.array_equal(np.sort(rows), before.train.rows)
        assert np.array_equal(after.val.targets, data.targets[after.val.rows])
        assert after.test is before.test
        assert [*after.splits] == ["train", "val", "test"]


def test_choice_depends_on_the_seed_and_the_domains_name_alone(data):
    alone = DomainSet("alone", (data["b"],), data.classes, "0" * 64)
    rows, same, other = (
        of.with_validation(0.2, seed)["b"].val.rows - of["b"].train.first
        for of, seed in ((data, 3), (alone, 3), (data, 4))
    )
    assert np.array_equal(rows, same)
    assert not np.array_equal(rows, other)


def test_whole_images_are_held_out_and_seen_as_test_images_are():
    views = Views(("identity", "rotate_45"), crop=3, sigma=2.0)
    arrays = images(14), np.zeros(14, np.int64)
    train = Split(*arrays, np.arange(10), views)
    test = Split(*arrays, np.arange(10, 14), Views(crop=3))
    domain = Domain("a", {"train": train, "test": test})
    held = domain.with_validation(0.3, np.random.default_rng(0))
    assert held.val.views == Views(crop=3, sigma=2.0)
    assert held.train.views == views
    assert (len(held.train), len(held.val)) == (14, 3)
    assert not set(held.train.rows) & set(held.val.rows)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_share_out_of_range(data, share):
    with refused("data.validation", "from 0 to below 1"):
        data.with_validation(share, 0)


def test_what_cannot_be_split_is_refused(data):
    with refused("domain a", "data.validation=0"):
        data.with_validation(0.2, 0).with_validation(0.2, 0)
    x, y = np.zeros((1, 4, 4, 3), np.uint8), np.zeros(1, int)
    with refused("domain a", "1 training example"):
        DomainSet.from_tensors({"a": (x, y, x, y)}).with_validation(0.5, 0)


LABELS = st.lists(st.integers(0, 6), min_size=2, max_size=200).map(np.array)
SHARES = st.floats(0.01, 0.99)


@given(LABELS, SHARES, st.integers(0, 2**63 - 1))
def test_it_is_a_partition_of_the_size_asked_for(labels, share, seed):
    train, test = seeded_split(labels, share, seed, "a")
    assert train.dtype == test.dtype == np.int64
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(labels)))
    assert len(test) == min(max(1, round(share * len(labels))), len(labels) - 1)
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()


@given(LABELS, SHARES)
def test_every_class_has_its_share_but_for_rounding(labels, share):
    _, test = seeded_split(labels, share, 0, "a")
    realised = len(test) / len(labels)
    for label in np.unique(labels):
        expected = realised * np.count_nonzero(labels == label)
        assert abs(np.count_nonzero(labels[test] == label) - expected) < 1 + 1e-9


def test_it_depends_on_the_seed_and_the_domain_alone():
    labels = np.arange(200) % 4

    def split(seed: int, domain: str) -> list[int]:
        return seeded_split(labels, 0.2, seed, domain)[1].tolist()

    assert split(0, "a") == split(0, "a")
    assert split(0, "a") != split(1, "a")
    assert split(0, "a") != split(0, "b")


def test_every_example_is_as_likely_to_be_a_test_example():
    labels = np.repeat([0, 1, 2], [7, 20, 3])
    drawn = np.zeros(30)
    for seed in range(2000):
        drawn[seeded_split(labels, 0.2, seed, "a")[1]] += 1
    # Binomial(2000, 0.2): standard deviation 17.9; five of them.
    assert np.abs(drawn - 400).max() < 90


def test_smaller_training_sets_lie_within_larger_ones_and_test_sets_stay(data):
    few, more = data.with_sizes([10, 5]), data.with_sizes([10, 20])
    assert [len(domain.train) for domain in few] == [10, 5]
    assert set(few["b"].train.rows) < set(more["b"].train.rows)
    assert np.array_equal(few["a"].train.rows, more["a"].train.rows)
    assert all(one.test is other.test for one, other in zip(few, data, strict=True))
    prints = {one.fingerprint for one in (data, few, more)}
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([10], "has 1 entries; must have 2, one for each of a, b"),
        ([51, 1], "a has 50 training images"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(data, sizes, words):
    with refused("data.sizes", words):
        data.with_sizes(sizes)


def test_copies_of_the_same_images_take_no_sizes(data):
    copies = DomainSet("copies", (data["a"], replace(data["a"], name="c")), data.classes, "0" * 64)
    with pytest.raises(UserError, match="copies of the same images"):
        copies.with_sizes([10, 10])
