"""Domains in one array, what is seen of their images, and what a set of them refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from robustmd.domains import Domain, DomainSet, Split, Views
from robustmd.domains.views import VARIANTS, matrix_of, rotation

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
LABELS = np.arange(20, dtype=np.int64) % 5


def split(numbers=range(10), **changes) -> Split:
    return replace(Split(IMAGES, LABELS, np.array(numbers, dtype=np.int64)), **changes)


TRAIN, TEST = split(), split(range(10, 20))


def domain(name="a", train=TRAIN, test=TEST) -> Domain:
    return Domain(name, {"train": train, "test": test})


def domain_set(*domains: Domain) -> DomainSet:
    return DomainSet("tried", domains, tuple("abcde"), "0" * 64)


def test_a_split_has_its_own_images_and_labels_and_a_subset_composes():
    whole = split(range(5, 15))
    assert np.array_equal(whole.images, IMAGES[5:15])
    assert np.shares_memory(whole.images, IMAGES)  # mapped, not copied
    part = whole.subset(np.array([5, 4, 3])).subset(np.array([0, 2]))
    assert part.rows.tolist() == [10, 8]
    assert np.array_equal(part.images, IMAGES[[10, 8]])
    assert part.targets.tolist() == [0, 3]


def test_each_image_counts_once_for_each_variant():
    views = Views(("identity", "flip_vertical", "rotate_45"))
    some = split([3, 9], views=views)
    assert (some.stored, len(some)) == (2, 6)
    assert some.targets.tolist() == [3, 3, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": np.array([0, 20])}, "from 0 to 20; there are 20 images"),
        ({"rows": np.array([-1, 2])}, "from -1"),
        ({"rows": np.array([0.0])}, "float64"),
        ({"rows": np.array([], np.int64)}, "no examples"),
        ({"all_images": IMAGES.copy()}, "not in the data set's one array"),
        ({"views": Views(("identity", "rotate_400"))}, "'rotate_400' is unknown; allowed are"),
        ({"views": Views(())}, "at least one"),
        ({"views": Views(("identity", "identity"))}, "none twice"),
        ({"views": Views(crop=0)}, "crop of 0"),
        ({"views": Views(crop=9)}, "crop of 9"),
        ({"views": Views(crop=3)}, "crop is not the others'"),
        ({"views": Views(sigma=-1.0)}, "σ = -1"),
        ({"views": Views(sigma=float("nan"))}, "nan"),
    ],
)
def test_a_set_names_the_domain_the_split_and_the_fault(changes, words):
    with refused("domain svhn, test split", words):
        domain_set(domain("svhn", test=split(**changes)))


def test_only_squares_are_turned():
    wide = Split(IMAGES[:, :4], LABELS, np.arange(5), Views(("rotate_90",)))
    with refused("4×8 cannot take rotate_90"):
        domain_set(domain(train=wide, test=wide))


def test_a_set_is_a_sequence_of_domains():
    a, b = domain("a"), domain("b")
    data = domain_set(a, b)
    assert list(data) == [a, b]
    assert len(data) == data.num_domains == 2
    assert data.names == ("a", "b")
    assert data[1] is data["b"] is b
    assert data.images is IMAGES
    with refused("'c'", "a, b"):
        data["c"]
    with refused("no domain"):
        domain_set()
    with refused("one name"):
        domain_set(a, domain("a", split(range(4))))


def test_the_size_is_what_the_model_sees():
    cropped = Views(crop=6)
    data = domain_set(domain(train=split(views=cropped), test=split([3], views=cropped)))
    assert data.image_size == (6, 6)


def test_class_masks_say_who_has_which_class():
    few = domain("b", split([0, 2]), split([4, 4]))
    data = domain_set(domain(), few)
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
