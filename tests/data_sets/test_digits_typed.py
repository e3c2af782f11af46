"""data=digits_typed: what is drawn, and how it differs from digits_mini's printed digits."""

from dataclasses import replace

import numpy as np
import pytest

from robustmd.data_sets.digits_mini import PRINTED, house_number
from robustmd.data_sets.digits_typed import TYPED, DigitsTyped
from robustmd.registry import DataFacts

GRID = np.stack([np.ones((32, 32)), *np.mgrid[-1:1:32j, -1:1:32j]], axis=-1)
EDGE = np.ones((32, 32), dtype=bool)
EDGE[3:-3, 3:-3] = False


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


def clean_edges(style):
    """The share of 100 pictures whose edges are one colour in a slanting light, and noise."""
    rng, found = np.random.default_rng(0), []
    for digit in range(100):
        pixels = house_number(digit % 10, rng, replace(style, noise=(2.0, 10.0)))[EDGE]
        lit = (pixels > 0).all(1) & (pixels < 255).all(1)  # the light is cut off there
        plane, *_ = np.linalg.lstsq(GRID[EDGE][lit], pixels[lit].astype(float), rcond=None)
        found.append(np.abs(pixels[lit] - GRID[EDGE][lit] @ plane).max() < 50)
    return np.mean(found)


def test_a_typed_digit_stands_alone_and_a_printed_one_among_others():
    assert clean_edges(TYPED.style) > 0.95
    assert clean_edges(PRINTED.style) < 0.4


def test_ink_and_background_differ_by_what_the_style_says():
    from robustmd.data_sets.digits_mini import _colours

    rng = np.random.default_rng(0)
    pairs = np.array([_colours(rng, TYPED.style.contrast) for _ in range(200)])
    assert np.abs(pairs[:, 0] - pairs[:, 1]).mean(axis=1).min() >= 60
