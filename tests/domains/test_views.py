"""Views: how many examples there are, which images they come from, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustmd.domains import Domain, DomainSet, Examples, Views
from robustmd.domains.examples import VARIANTS, matrix_of, rotation
from robustmd.errors import UserError


def examples(count=10, size=8, views=Views(), **changes):  # noqa: B008 - it is frozen
    images = np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8)
    return Examples(images, np.arange(count, dtype=np.int64) % 5, views=views, **changes)


def domain_set(*domains):
    return DomainSet("tried", domains, tuple("abcde"), "0" * 64)


def test_each_image_counts_once_for_each_variant():
    views = Views(("identity", "flip_vertical", "rotate_45"))
    some = examples(rows=np.array([7, 2]), views=views)
    assert (some.stored, len(some)) == (2, 6)
    assert some.targets.tolist() == [2, 2, 2, 2, 2, 2]
    assert examples(rows=np.array([3, 9]), views=views).targets.tolist() == [3, 3, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("views", "words"),
    [
        (Views(("identity", "rotate_400")), "'rotate_400' is unknown; allowed are identity"),
        (Views(("flip", "rotate_30")), "'flip'"),
        (Views(()), "at least one"),
        (Views(("identity", "identity")), "none twice"),
        (Views(crop=0), "crop of 0"),
        (Views(crop=9), "crop of 9"),
        (Views(sigma=-1.0), "σ = -1"),
        (Views(sigma=float("nan")), "nan"),
        (Views(sigma=float("inf")), "inf"),
    ],
)
def test_a_fault_names_the_domain_and_the_split(views, words, one_line):
    with pytest.raises(UserError) as error:
        Domain("vgg", train=examples(views=views), test=examples())
    one_line(error, "domain vgg, train split", words)


def test_only_square_images_are_turned(one_line):
    wide = Examples(np.zeros((2, 4, 6, 3), np.uint8), np.zeros(2, np.int64))
    flipped = replace(wide, views=Views(("identity", "flip_horizontal")))
    assert Domain("a", flipped, wide).train.image_size == (4, 6)
    with pytest.raises(UserError) as error:
        Domain("a", replace(wide, views=Views(("rotate_90",))), wide)
    one_line(error, "4×6", "rotate_90", "square")


def test_sizes_are_those_that_the_model_sees(one_line):
    cropped = Views(crop=6)
    large, small = examples(size=8, views=cropped), examples(size=6)
    data = domain_set(Domain("a", large, large), Domain("b", small, small))
    assert data.image_size == (6, 6)
    with pytest.raises(UserError) as error:
        Domain("a", large, examples(size=8))
    one_line(error, "(6, 6)", "(8, 8)")


some_views = st.builds(
    Views,
    st.lists(st.sampled_from(list(VARIANTS)), min_size=1, unique=True).map(tuple),
    st.none() | st.integers(1, 9),
    st.integers(0, 3) | st.floats(0, 3),
)


@settings(deadline=None)
@given(some_views, some_views)
def test_views_have_the_same_words_exactly_if_they_are_equal(one, other):
    assert (one.in_words() == other.in_words()) == (one == other)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(list(VARIANTS)), min_size=1, unique=True).map(tuple),
    st.floats(0, 0.99),
    st.integers(0, 99),
)
def test_validation_holds_out_whole_images_and_shows_them_upright(variants, share, seed):
    train = examples(views=Views(variants, crop=5, sigma=2.0))
    before = domain_set(Domain("a", train, examples(views=Views(crop=5))))
    after = before.with_validation(share, seed)["a"]
    if share == 0:
        assert after.val is None
        return
    assert after.val.views == Views(crop=5, sigma=2.0)
    assert after.train.views == train.views
    rows = np.concatenate([after.train.rows, after.val.rows])
    assert np.array_equal(np.sort(rows), np.arange(10))
    assert len(after.train) + len(after.val) * len(variants) == len(train)


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


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_named_variants_have_the_matrices_they_always_had(variant: str) -> None:
    half = 0.707106781186548
    always = {
        "identity": (1, 0, 0, 1),
        "flip_horizontal": (-1, 0, 0, 1),
        "flip_vertical": (1, 0, 0, -1),
        "rotate_45": (half, -half, half, half),
        "rotate_90": (0, -1, 1, 0),
        "rotate_135": (-half, -half, half, -half),
        "rotate_180": (-1, 0, 0, -1),
        "rotate_225": (-half, half, -half, -half),
        "rotate_270": (0, 1, -1, 0),
        "rotate_315": (half, half, -half, half),
    }
    assert matrix_of(variant) == VARIANTS[variant] == pytest.approx(always[variant], abs=2e-15)


@settings(deadline=None)
@given(st.floats(-1e4, 1e4))
def test_a_rotation_has_one_name_and_turns_by_that(degrees: float) -> None:
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
def test_a_variant_has_no_second_name(name: str) -> None:
    with pytest.raises(ValueError, match="unknown; allowed are identity") as error:
        matrix_of(name)
    assert "\n" not in str(error.value)
