"""Domains in one array, how their images are seen, and seeded draws of who is held out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from robustmd.domains import Domain, DomainSet, Split, Views
from robustmd.domains.domain_set import seeded_split
from robustmd.domains.noise import noise_copies

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
LABELS = np.arange(20, dtype=np.int64) % 5


def split(numbers=range(10), **changes) -> Split:
    return replace(Split(IMAGES, LABELS, np.array(numbers, dtype=np.int64)), **changes)


def domain_set(**domains: tuple[Split, Split]) -> DomainSet:
    made = [Domain(name, {"train": a, "test": b}) for name, (a, b) in domains.items()]
    return DomainSet.of("tried", made, "abcde")


@pytest.fixture
def data() -> DomainSet:
    rng = np.random.default_rng(0)
    counts = {"a": 50, "b": 21}
    images = {n: rng.integers(0, 256, (n, 4, 4, 3), dtype=np.uint8) for n in (50, 21, 8)}
    return DomainSet.from_tensors(
        {
            name: (images[n], np.arange(n) % 5, images[8], np.arange(8) % 5)
            for name, n in counts.items()
        }
    )


def test_a_split_has_its_own_images_and_labels():
    whole = split(range(5, 15))
    assert np.array_equal(whole.images, IMAGES[5:15])
    assert np.shares_memory(whole.images, IMAGES)  # mapped, not copied
    part = whole.subset(np.array([5, 3]))
    assert np.array_equal(part.images, IMAGES[[10, 8]])
    assert part.targets.tolist() == [0, 3]


def test_each_image_counts_once_for_each_variant():
    some = split([3, 9], views=Views(("identity", "flip_vertical", "rotate_45")))
    assert (some.stored, len(some)) == (2, 6)
    assert some.targets.tolist() == [3, 3, 3, 4, 4, 4]


def test_a_set_is_a_sequence_of_domains(data):
    assert [domain.name for domain in data] == ["a", "b"]
    assert data[1] is data["b"]
    assert len(data) == 2
    with refused("'c'", "a, b"):
        data["c"]
    with refused("no domain"):
        DomainSet.from_tensors({})
    assert repr(data).splitlines()[0] == "DomainSet tensors: 2 domains, 5 classes, 4×4"


def test_the_size_is_what_the_model_sees():
    cropped = split(views=Views(crop=6))
    assert domain_set(a=(cropped, cropped)).image_size == (6, 6)


def test_class_masks_say_who_has_which_class():
    data = domain_set(a=(split(), split(range(10, 20))), b=(split([0, 2]), split([4, 4])))
    assert data.class_masks().tolist() == [[True] * 5, [True, False, True, False, True]]
    assert not data.absent_classes().any()
    own = replace(data, labels="per_domain")
    assert own.absent_classes()[1].tolist() == [False, True, False, True, False]


def test_validation_takes_its_share_and_loses_nothing(data):
    held = data.with_validation(0.2, seed=3)
    assert held.fingerprint == data.fingerprint  # the data are the same
    for before, after in zip(data, held, strict=True):
        assert len(after.val) == round(0.2 * len(before.train))
        rows = np.concatenate([after.train.rows, after.val.rows])
        assert np.array_equal(np.sort(rows), before.train.rows)
        assert after.test is before.test
    assert not np.array_equal(held["b"].val.rows, data.with_validation(0.2, 4)["b"].val.rows)


def test_validation_is_seen_as_test_images_are():
    views = Views(("identity", "rotate_45"), crop=3, sigma=2.0)
    data = domain_set(a=(split(views=views), split(range(10, 14), views=Views(crop=3))))
    held = data.with_validation(0.3, 0)["a"]
    assert held.val.views == Views(crop=3, sigma=2.0)
    assert held.train.views == views
    assert (len(held.train), len(held.val)) == (14, 3)


def test_a_domain_with_a_validation_split_or_too_few_images_is_refused(data):
    with refused("domain a", "data.validation=0"):
        data.with_validation(0.2, 0).with_validation(0.2, 0)
    with refused("domain a", "1 training image"):
        domain_set(a=(split([0]), split([1]))).with_validation(0.5, 0)


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=200).map(np.array),
    st.floats(0.01, 0.99),
    st.integers(0, 2**63 - 1),
)
def test_a_drawn_split_is_a_partition_in_which_every_class_has_its_share(labels, share, seed):
    train, test = seeded_split(labels, share, seed, "a")
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(labels)))
    assert len(test) == min(max(1, round(share * len(labels))), len(labels) - 1)
    realised = len(test) / len(labels)
    for label in np.unique(labels):
        expected = realised * np.count_nonzero(labels == label)
        assert abs(np.count_nonzero(labels[test] == label) - expected) < 1 + 1e-9


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
    assert len({one.fingerprint for one in (data, few, more)}) == 3


def test_sizes_that_do_not_fit_are_refused(data):
    with refused("data.sizes", "has 1 entries; must have 2, one for each of a, b"):
        data.with_sizes([10])
    with refused("data.sizes", "a has 50 training images"):
        data.with_sizes([51, 1])
    with refused("copies of the same images"):
        noise_copies(data, "a", [0, 4], "copies").with_sizes([10, 10])
