"""data=digits_typed: what is drawn, and how it differs from digits_mini's printed digits."""

from dataclasses import replace

import numpy as np
import pytest

from robustmd.data_sets.digits_mini import PRINTED, _colours, house_number
from robustmd.data_sets.digits_typed import TYPED, DigitsTyped
from robustmd.registry import DataFacts


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    cache = tmp_path_factory.mktemp("typed")
    few = replace(TYPED, counts={"train": 40, "test": 20})
    return few.load(DataFacts(lambda _: cache, lambda line: None))


def test_it_is_handwritten_against_typed_digits(small):
    assert (small.name, small.names) == ("digits_typed", DigitsTyped().names())
    assert small.names == ("handwritten", "typed")
    assert [(len(d.train), len(d.test)) for d in small] == [(1400, 397), (40, 20)]
    assert np.bincount(small["typed"].train.labels).tolist() == [4] * 10
    assert (TYPED.counts, small.image_size) == ({"train": 3000, "test": 600}, (32, 32))


def test_typed_ink_is_the_lighter_one_and_printed_ink_either():
    def apart(style):
        rng = np.random.default_rng(0)
        pairs = np.array([_colours(rng, style) for _ in range(200)]).mean(axis=2)
        return pairs[:, 1] - pairs[:, 0]

    typed, printed = apart(TYPED.style), apart(PRINTED.style)
    assert typed.min() >= 50
    assert printed.min() < -50 < 50 < printed.max()


def test_a_picture_follows_its_style():
    """Without neighbours, turns and noise two digits of one seed differ by the digit alone."""
    plain = replace(TYPED.style, neighbours=0.0, shift=0.0, turn=0.0, noise=(0.0, 0.0))
    one, eight = (house_number(d, np.random.default_rng(5), plain).astype(int) for d in (1, 8))
    noisy = house_number(1, np.random.default_rng(5), replace(plain, noise=(20.0, 20.0)))
    assert np.array_equal(one[:3], eight[:3])  # background
    assert not np.array_equal(one, eight)
    assert 15 < (noisy - one)[(noisy > 0) & (noisy < 255)].std() < 25
