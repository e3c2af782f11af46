"""Domains, what is seen of their images, and sets of them: what they give, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robustmd.domains.examples import VARIANTS, matrix_of, rotation

from robustmd.domains import Domain, DomainSet, Examples, Views


def examples(count=10, size=8, **changes):
    images = np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8)
    labels = np.arange(count, dtype=np.int64) % 5
    return Examples(**{"images": images, "labels": labels, **changes})


def domain_set(*domains):
    return DomainSet("tried", domains, tuple("abcde"), "0" * 64)


def test_rows_choose_and_subset_composes():
    whole = examples()
    part = whole.subset([5, 4, 3]).subset([0, 2])
    assert part.rows.tolist() == [5, 3]
    assert part.targets.tolist() == [0, 3]
    assert len(part) == 2
    assert part.images is whole.images
    for positions in ([-1], [10], [0, 11]):
        with pytest.raises(IndexError, match=r"0\.\.9"):
            whole.subset(positions)


def test_each_image_counts_once_for_each_variant():
    views = Views(("identity", "flip_vertical", "rotate_45"))
    some = examples(rows=np.array([3, 9]), views=views)
    assert (some.stored, len(some)) == (2, 6)
    assert some.targets.tolist() == [3, 3, 3, 4, 4, 4]


WIDE = np.zeros((10, 4, 6, 3), np.uint8)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": WIDE.astype(np.float32)}, "float32"),
        ({"images": WIDE[..., 0]}, "[10, 4, 6]"),
        ({"images": WIDE[..., :1]}, "[10, 4, 6, 1]"),
        ({"images": WIDE.transpose(0, 2, 1, 3)}, "C-contiguous"),
        ({"labels": np.zeros(5, np.int64)}, "int64 [5]"),
        ({"labels": np.zeros(10, np.int32)}, "int32 [10]"),
        ({"rows": np.array([0, 10])}, "from 0 to 10"),
        ({"rows": np.array([-1, 2])}, "from -1"),
        ({"rows": np.array([0.0])}, "float64"),
        ({"rows": np.array([], np.int64)}, "no examples"),
        ({"views": Views(("identity", "rotate_400"))}, "'rotate_400' is unknown; allowed are"),
        ({"views": Views(("flip", "rotate_30"))}, "'flip'"),
        ({"views": Views(())}, "at least one"),
        ({"views": Views(("identity", "identity"))}, "none twice"),
        ({"views": Views(crop=0)}, "crop of 0"),
        ({"views": Views(crop=9)}, "crop of 9"),
        ({"views": Views(sigma=-1.0)}, "σ = -1"),
        ({"views": Views(sigma=float("nan"))}, "nan"),
        ({"images": WIDE, "views": Views(("rotate_90",))}, "4×6 cannot take rotate_90"),
    ],
)
def test_domain_names_itself_the_split_and_the_fault(changes, words):
    with refused("domain svhn, test split", words):
        Domain("svhn", train=examples(), test=examples(**changes))


def test_set_is_a_sequence_of_domains():
    a, b = (Domain(name, examples(), examples()) for name in "ab")
    data = domain_set(a, b)
    assert list(data) == [a, b]
    assert len(data) == data.num_domains == 2
    assert data.names == ("a", "b")
    assert data[1] is data["b"] is b
    with refused("'c'", "a, b"):
        data["c"]


def test_sets_that_do_not_agree_are_refused():
    with refused("no domain"):
        domain_set()
    one = Domain("a", examples(), examples())
    with refused("one name"):
        domain_set(one, one)
    small = Domain("b", examples(size=3), examples(size=3))
    with refused("a 8×8", "b 3×3"):
        domain_set(one, small)


def test_sizes_are_those_that_the_model_sees():
    large, small = examples(views=Views(crop=6)), examples(size=6)
    data = domain_set(Domain("a", large, large), Domain("b", small, small))
    assert data.image_size == (6, 6)
    with refused("6×6, 8×8"):
        Domain("a", large, examples())


def test_class_masks_say_who_has_which_class():
    images = np.zeros((2, 8, 8, 3), np.uint8)
    few = Domain("b", Examples(images, np.array([0, 2])), Examples(images, np.array([4, 4])))
    data = domain_set(Domain("a", examples(), examples()), few)
    assert data.class_masks().tolist() == [[True] * 5, [True, False, True, False, True]]
    assert not data.absent_classes().any()
    own = replace(data, labels="per_domain")
    assert own.absent_classes()[1].tolist() == [False, True, False, True, False]
    held_out = own.with_validation(0.5, seed=0)
    assert np.array_equal(held_out.absent_classes(), own.absent_classes())


some_views = st.builds(
    Views,
    st.lists(st.sampled_from(list(VARIANTS)), min_size=1, unique=True).map(tuple),
    st.none() | st.integers(1, 9),
    st.integers(0, 3) | st.floats(0, 3),
)


@settings(max_examples=50)
@given(some_views, some_views)
def test_views_have_the_same_words_exactly_if_they_are_equal(one, other):
    assert (one.in_words() == other.in_words()) == (one == other)


@given(st.floats(-1e4, 1e4) | st.integers(0, 8).map(lambda i: 45.0 * i))
def test_a_rotation_has_one_name_and_turns_by_that(degrees):
    name = rotation(degrees)
    a, b, c, d = matrix_of(name)
    turn = np.deg2rad(degrees)
    expected = [np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)]
    np.testing.assert_allclose([a, b, c, d], expected, atol=1e-5)
    assert Views((name,)).fault(8, 8) is None
    if name != "identity":
        assert rotation(float(name.removeprefix("rotate_"))) == name


SECOND_NAMES = (
    "|rotate|rotate_|15|rotate_0|rotate_360|rotate_-15|rotate_15.0|rotate_1_5|rotate_015|"
    "rotate_ 15|rotate_15 |rotate_nan|rotate_inf|rotate_1e1|rotate_14.285714|Rotate_15"
)


@pytest.mark.parametrize("name", SECOND_NAMES.split("|"))
def test_a_variant_has_no_second_name(name):
    with pytest.raises(ValueError, match="unknown; allowed are identity"):
        matrix_of(name)
