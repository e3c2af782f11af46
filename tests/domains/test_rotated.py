"""A domain dealt out to rotations and noise levels: who gets which images, and how it is seen."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tiny import composed, synthetic_domains

from robustmd import settings
from robustmd.config.loading import load_domains
from robustmd.domains import Domain, DomainSet, Examples, Views
from robustmd.domains.duplicates import find_duplicates
from robustmd.domains.noise_and_rotation import rotated_grid
from robustmd.errors import UserError

SIX = [0.0, 15.0, 30.0, 45.0, 60.0, 75.0]


def grid(angles=SIX, sigmas=(0,), seed=0, base=None, domain="a", name="digits_rotated"):
    return rotated_grid(base or synthetic_domains(), domain, angles, sigmas, seed, name)


def rows(data: DomainSet, split: str) -> list[list[int]]:
    return [domain.split(split).rows.tolist() for domain in data]


def numbered(train: int, test: int) -> DomainSet:
    """One domain whose image at row i is known by its first two bytes."""

    def split(count: int) -> tuple[np.ndarray, np.ndarray]:
        images = np.zeros((count, 4, 4, 3), np.uint8)
        images[:, 0, 0, 0], images[:, 0, 0, 1] = np.divmod(np.arange(count), 256)
        return images, np.arange(count) % 10

    return DomainSet.from_tensors({"a": (*split(train), *split(test))})


def test_domains_come_angle_by_angle_and_say_what_they_are() -> None:
    data = grid([0, 15, 7.2], [0, 4.5])
    assert data.names == (
        "rotate_0_sigma_0",
        "rotate_0_sigma_4.5",
        "rotate_15_sigma_0",
        "rotate_15_sigma_4.5",
        "rotate_7.2_sigma_0",
        "rotate_7.2_sigma_4.5",
    )
    assert [d.source.removeprefix("tensors in memory") for d in data][:4] == [
        "",
        " + N(0, 4.5²)",
        ", rotated by 15°",
        ", rotated by 15° + N(0, 4.5²)",
    ]
    assert data["rotate_0_sigma_0"].train.views == Views()
    assert data["rotate_7.2_sigma_4.5"].train.views == Views(("rotate_7.2",), sigma=4.5)
    assert data["rotate_7.2_sigma_4.5"].test.views == Views(("rotate_7.2",), sigma=4.5)


@hypothesis_settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**63 - 1), st.booleans())
def test_every_image_is_in_one_domain_and_sizes_differ_by_one_at_most(
    domains: int, seed: int, with_val: bool
) -> None:
    base = synthetic_domains(examples=31)
    base = base.with_validation(0.5, seed=1) if with_val else base
    data = grid([float(i) for i in range(domains)], seed=seed, base=base)
    for split in ("train", "test", *(["val"] if with_val else [])):
        stored = base["a"].split(split)
        whole = np.arange(stored.stored) if stored.rows is None else stored.rows
        dealt = rows(data, split)
        assert sorted(chain(*dealt)) == sorted(whole)
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
        assert all(own == sorted(own) for own in dealt)
    assert all((domain.val is not None) == with_val for domain in data)


def test_who_gets_what_depends_on_the_seed_the_split_and_the_base_domain_alone() -> None:
    one = grid()
    other = grid([float(i) for i in range(100, 106)], base=synthetic_domains(seed=1), name="x")
    assert rows(one, "train") == rows(other, "train")
    assert rows(one, "test") == rows(other, "test")
    assert rows(grid(seed=1), "train") != rows(one, "train")
    assert rows(grid(domain="b"), "train") != rows(one, "train")
    even = grid(base=numbered(60, 60))
    assert rows(even, "train") != rows(even, "test")


def test_the_dealing_is_what_it_has_always_been() -> None:
    """A change here would silently be another data set under old names."""
    dealt = [[3, 10], [7, 11], [2, 4], [1, 8], [0, 9], [5, 6]]
    assert rows(grid(base=numbered(12, 6)), "train") == dealt


@pytest.mark.parametrize("quarter", [0, 1, 2, 3])
def test_right_angles_turn_counter_clockwise_and_exactly(quarter: int) -> None:
    base = synthetic_domains()
    split = grid([90.0 * quarter, 45.0], base=base).domains[0].test
    for position, row in enumerate(split.rows):
        expected = np.rot90(split.images[row], quarter)
        assert np.array_equal(split.as_seen(position, np.random.default_rng(0)), expected)


def test_a_thousand_domains_of_few_images() -> None:
    angles, sigmas = [9.0 * i for i in range(40)], list(range(25))
    data = grid(angles, sigmas, base=numbered(2500, 1000))
    assert len(set(data.names)) == 1000
    assert {len(domain.train) for domain in data} == {2, 3}
    assert {len(domain.test) for domain in data} == {1}
    assert sorted(chain(*rows(data, "train"))) == list(range(2500))
    assert all(np.shares_memory(d.train.images, data[0].train.images) for d in data)


@hypothesis_settings(deadline=None)
@given(*[st.tuples(st.lists(st.sampled_from([0, 15, 90, 7.2]), min_size=1, unique=True),
                   st.lists(st.sampled_from([0, 4, 4.5]), min_size=1, unique=True),
                   st.integers(0, 2))] * 2)  # fmt: skip
def test_grids_that_differ_have_other_fingerprints(one, other) -> None:
    base = numbered(200, 100)
    names = [grid(*choice, base=base).fingerprint for choice in (one, other)]
    # Of a single domain that has every image, every seed makes the same.
    same = one[:2] == other[:2] and (one[2] == other[2] or len(one[0]) * len(one[1]) == 1)
    assert (names[0] == names[1]) == same


def test_the_fingerprint_is_also_of_the_base_and_of_who_has_which_images() -> None:
    base = synthetic_domains()
    found = [
        grid(base=base),
        grid(base=base, domain="b"),
        grid(base=base, name="another"),
        grid(base=synthetic_domains(seed=1)),
        grid(base=base.with_validation(0.2, seed=0)),
        grid(base=base.with_validation(0.2, seed=1)),
    ]
    assert len({data.fingerprint for data in found}) == len(found)


def test_held_out_images_are_turned_as_the_domains_others_are() -> None:
    data = grid(SIX, [0, 4])
    held = data.with_validation(0.2, seed=0)
    for before, after in zip(data, held, strict=True):
        assert after.val.views == after.train.views == before.train.views
        both = np.concatenate([after.train.rows, after.val.rows])
        assert np.array_equal(np.sort(both), before.train.rows)


def test_duplicates_are_looked_for_in_every_domain() -> None:
    images = np.random.default_rng(0).integers(0, 256, (72, 4, 4, 3), dtype=np.uint8)
    train, test = images[:60].copy(), images[60:].copy()
    labels = np.zeros(60, np.int64)
    whole = Domain("a", Examples(train, labels), Examples(test, labels[:12]))
    data = grid(base=replace(synthetic_domains(), domains=(whole,)))
    first, last = (data[k].test.rows[0] for k in (3, 5))
    test[last] = test[first]
    (found,) = find_duplicates(data)
    assert (str(found.first), str(found.second)) == ("rotate_45 test", "rotate_75 test")
    assert (found.images, found.examples) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"domain": "c"}, ("'c'", "a, b")),
        ({"angles": [15, 15.0]}, ("one name", "rotate_15")),
        ({"angles": [15, 375]}, ("one name", "rotate_15")),
        ({"sigmas": [4, 4.0]}, ("one name", "sigma_4")),
        ({"sigmas": [-1, 4]}, ("rotate_0_sigma_-1", "σ = -1")),
        ({"sigmas": [float("nan")]}, ("σ = nan",)),
        ({"angles": []}, ("no domain",)),
        ({"sigmas": []}, ("no domain",)),
        ({"angles": [float("nan")]}, ("nan", "finite")),
        ({"angles": [0, float("inf")]}, ("inf", "finite")),
        ({"angles": [float(i) for i in range(31)]}, ("a/test", "30 images", "31 domains")),
        ({"angles": [float(i) for i in range(61)]}, ("a/train", "60 images", "61 domains")),
    ],
)
def test_what_cannot_be_dealt_or_turned_is_refused(changes, words, one_line) -> None:
    with pytest.raises(UserError) as error:
        grid(**changes)
    one_line(error, *words)


def test_images_that_are_turned_already_or_not_square_are_refused(one_line) -> None:
    base = synthetic_domains()
    train = replace(base["a"].train, views=Views(("identity", "flip_vertical")))
    with pytest.raises(UserError) as error:
        grid(base=replace(base, domains=(replace(base["a"], train=train),)))
    one_line(error, "domain a", "turned or flipped already")
    wide = Examples(np.zeros((9, 4, 6, 3), np.uint8), np.zeros(9, np.int64))
    with pytest.raises(UserError) as error:
        grid(base=replace(base, domains=(Domain("a", wide, wide),)))
    one_line(error, "rotate_15", "4×6", "square")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.angles=[]", "one or more different degrees"),
        ("data.angles=[0,360]", "one or more different degrees"),
        ("data.angles=[0,359.9999999]", "one or more different degrees"),
        ("data.angles=[-15,0]", "one or more different degrees"),
        ("data.angles=[15,15.0]", "one or more different degrees"),
        ("data.angles=[0,.inf]", "one or more different degrees"),
        ("data.angles=[0,.nan]", "one or more different degrees"),
        ("data.sigmas=[]", "one or more different numbers"),
        ("data.sigmas=[0,0.0]", "one or more different numbers"),
        ("data.sigmas=[-1]", "one or more different numbers"),
        ("data.split_seed=-1", "a whole number from 0"),
        ("data.domain=usps", "one of mnist, svhn"),
        ("data.angles=[15]", "a mixture needs two"),
    ],
)
def test_settings_out_of_range(override: str, words: str, one_line) -> None:
    with pytest.raises(UserError) as error:
        settings.validate(composed("data=digits_rotated", override))
    one_line(error, override.partition("=")[0], words)


def test_the_defaults_are_the_six_angles_and_whole_numbers_are_the_same_run() -> None:
    config = composed("data=digits_rotated")
    assert config.data.angles == SIX
    assert settings.number_changing(settings.as_dict(config))["data"] == {"name": "digits_rotated"}


@pytest.mark.parametrize("domain", ["handwritten", "printed"])
def test_the_mini_digits_turn_without_any_file(prepared_cache: Path, domain: str) -> None:
    overrides = [
        "data=digits_rotated",
        f"data.domain={domain}",
        "data.sigmas=[0,20]",
        "data.validation=0.2",
        f"paths.cache={prepared_cache}",
    ]
    found = load_domains(composed(*overrides), lambda _: None)
    assert len(found) == 12
    again = load_domains(composed(*overrides, "data.split_seed=1"), lambda _: None)
    assert found.fingerprint != again.fingerprint
    held = [set(d.val.rows) | set(d.train.rows) for d in found]
    assert sum(map(len, held)) == len(set.union(*held))


def test_extra_digits_are_svhns_alone(one_line) -> None:
    with pytest.raises(UserError) as error:
        load_domains(composed("data=digits_rotated", "data.svhn.extra=true"), lambda _: None)
    one_line(error, "data.svhn.extra=true", "mnist")


def test_all_of_mnist_at_six_angles(real_data: Path, tmp_path: Path) -> None:
    overrides = ["data=digits_rotated", f"paths.data={real_data}", f"paths.cache={tmp_path}"]
    data = load_domains(composed(*overrides), lambda _: None)
    assert data.names == tuple(f"rotate_{angle:g}" for angle in SIX)
    assert [len(domain.train) for domain in data] == [10_000] * 6
    assert sorted(len(domain.test) for domain in data) == [1666] * 2 + [1667] * 4
    for split, count in (("train", 60_000), ("test", 10_000)):
        dealt = np.concatenate([domain.split(split).rows for domain in data])
        assert np.array_equal(np.sort(dealt), np.arange(count))
    # A shuffle: each domain has about a tenth of each digit (5 standard deviations of a draw).
    shares = np.array([np.bincount(domain.train.targets, minlength=10) for domain in data])
    expected = shares.sum(axis=0) / 6
    assert (np.abs(shares - expected) < 5 * np.sqrt(expected)).all()
