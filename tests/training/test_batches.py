import numpy as np
import pytest
from tiny import sized

from robustmd.training.batches import BatchStream, parts_of


def test_every_domain_gets_an_equal_share_within_its_size() -> None:
    batches = BatchStream(sized(a=7, b=1000, c=3), batch_size=20, seed=1)
    drawn = np.stack([batches.draw(t).positions.numpy() for t in range(300)])
    assert drawn.shape == (300, 3, 6)
    assert batches.effective_batch == 18
    assert drawn.min() == 0
    assert (drawn.max(axis=(0, 2)) < [7, 1000, 3]).all()


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
