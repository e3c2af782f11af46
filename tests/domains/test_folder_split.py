"""The drawn test split: its size, its classes, and what it depends on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robustmd.domains.splits import seeded_split

LABELS = st.lists(st.integers(0, 6), min_size=2, max_size=200).map(np.array)
SHARES = st.floats(0.01, 0.99)


@given(LABELS, SHARES, st.integers(0, 2**63 - 1))
def test_it_is_a_partition_of_the_size_asked_for(
    labels: np.ndarray, share: float, seed: int
) -> None:
    train, test = seeded_split(labels, share, seed, "a")
    assert train.dtype == test.dtype == np.int64
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(labels)))
    assert len(test) == min(max(1, round(share * len(labels))), len(labels) - 1)
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()


@given(LABELS, SHARES)
def test_every_class_has_its_share_but_for_rounding(labels: np.ndarray, share: float) -> None:
    _, test = seeded_split(labels, share, 0, "a")
    realised = len(test) / len(labels)
    for label in np.unique(labels):
        expected = realised * np.count_nonzero(labels == label)
        assert abs(np.count_nonzero(labels[test] == label) - expected) < 1 + 1e-9


def test_it_depends_on_the_seed_and_the_domain_alone() -> None:
    labels = np.arange(200) % 4

    def split(seed: int, domain: str) -> list[int]:
        return seeded_split(labels, 0.2, seed, domain)[1].tolist()

    assert split(0, "a") == split(0, "a")
    assert split(0, "a") != split(1, "a")
    assert split(0, "a") != split(0, "b")


def test_every_example_is_as_likely_to_be_a_test_example() -> None:
    labels = np.repeat([0, 1, 2], [7, 20, 3])
    drawn = np.zeros(30)
    for seed in range(2000):
        drawn[seeded_split(labels, 0.2, seed, "a")[1]] += 1
    # Binomial(2000, 0.2): standard deviation 17.9; five of them.
    assert np.abs(drawn - 400).max() < 90
