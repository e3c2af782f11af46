import numpy as np
import pytest
from tiny import sized

from robustmd.training.batches import BatchStream, parts_of, stream


def test_every_domain_gets_an_equal_share_within_its_size() -> None:
    batches = BatchStream(sized(a=7, b=1000, c=3), batch_size=20, seed=1)
    drawn = np.stack([batches.draw(t).positions.numpy() for t in range(300)])
    assert drawn.shape == (300, 3, 6)
    assert batches.effective_batch == 18
    assert drawn.min() == 0
    assert (drawn.max(axis=(0, 2)) < [7, 1000, 3]).all()


def test_draws_are_uniform_with_replacement() -> None:
    batches = BatchStream(sized(a=5), batch_size=50, seed=3)
    drawn = np.concatenate([batches.draw(t).positions.numpy().ravel() for t in range(400)])
    counts = np.bincount(drawn, minlength=5)
    expected = len(drawn) / 5
    assert ((counts - expected) ** 2 / expected).sum() < 23.5  # chi-squared, 4 df, p = 1e-4


def test_seeds_and_purposes_give_other_streams() -> None:
    def first(seed: int, purpose: str) -> float:
        return float(stream(seed, purpose).random())

    assert len({first(0, "a"), first(1, "a"), first(0, "b")}) == 3
    assert first(2**63 - 1, "a") == first(2**63 - 1, "a")


def test_blocks_do_not_overlap() -> None:
    """A block may draw 2**64 numbers before it meets the next one's."""
    long = stream(0, "a", block=0).integers(2**63, size=10_000)
    following = stream(0, "a", block=1).integers(2**63, size=10_000)
    assert not np.isin(following, long).any()


@pytest.mark.parametrize("seed", [0, 5])
def test_the_fingerprint_is_of_the_first_batches(seed: int) -> None:
    one = BatchStream(sized(a=50), 8, seed)
    assert one.fingerprint() == BatchStream(sized(a=50), 8, seed).fingerprint()
    assert one.fingerprint() != BatchStream(sized(a=50), 8, seed + 1).fingerprint()


@pytest.mark.parametrize(
    ("whole", "shares", "parts"),
    [
        (32, [175, 9, 3, 53], [23, 1, 1, 7]),
        (4, [175, 9, 3, 53], [1, 1, 1, 1]),
        (10, [0.5, 0.3, 0.2], [5, 3, 2]),
        (7, [1, 1, 1], [3, 2, 2]),
        (1, [0.1], [1]),
    ],
)
def test_unequal_parts_are_whole_near_the_shares_and_none_is_0(whole, shares, parts) -> None:
    assert parts_of(whole, shares) == parts
    sizes = sized(**dict.fromkeys("abcd"[: len(shares)], 20))
    batches = BatchStream(sizes, whole, 0, shares=shares)
    assert batches.effective_batch == whole
    assert batches.draw(150).positions.shape == (whole, 1)
