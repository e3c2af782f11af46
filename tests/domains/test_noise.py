"""One domain's images as several domains: noisy copies of it, or turned and noisy shares."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tiny import composed, synthetic_domains

from robustmd.config.loading import load_domains
from robustmd.domains import DomainSet, Views
from robustmd.domains.noise import noise_copies, rotated_grid


def silent(_: str) -> None:
    pass


def test_the_copies_share_all_arrays_and_differ_in_their_noise():
    base = synthetic_domains()
    copies = noise_copies(base, "b", [0, 4, 12.5], "digits_noise")
    assert copies.names == ("sigma_0", "sigma_4", "sigma_12.5")
    assert copies.images is base.images
    for domain, sigma in zip(copies, (0.0, 4.0, 12.5), strict=True):
        for split in ("train", "test"):
            assert domain.splits[split].rows is base["b"].splits[split].rows
            assert domain.splits[split].views.sigma == sigma


def test_only_the_base_domains_files_are_needed(write_mnist, tmp_path):
    write_mnist(tmp_path / "data" / "MNIST" / "raw")
    folders = f"paths.data={tmp_path / 'data'}", f"paths.cache={tmp_path / 'cache'}"
    found = load_domains(composed("data=digits_noise", "data.verify=false", *folders), silent)
    assert found.names == ("sigma_0", "sigma_4", "sigma_8", "sigma_12")
    assert not (tmp_path / "data" / "svhn").exists()


SIX = [0.0, 15.0, 30.0, 45.0, 60.0, 75.0]


def grid(angles=SIX, sigmas=(0,), seed=0, base=None, domain="a", name="digits_rotated"):
    return rotated_grid(base or synthetic_domains(), domain, angles, sigmas, seed, name)


def rows(data: DomainSet, split: str) -> list[list[int]]:
    splits = [domain.splits[split] for domain in data]
    return [(split.rows - split.first).tolist() for split in splits]


def sized(train: int, test: int) -> DomainSet:
    """One domain with so many images."""
    splits = (np.zeros((n, 4, 4, 3), np.uint8) for n in (train, test))
    arrays = [array for images in splits for array in (images, np.arange(len(images)) % 10)]
    return DomainSet.from_tensors({"a": arrays})


def test_domains_come_angle_by_angle_and_say_what_they_are():
    data = grid([0, 15, 0.5], [0, 4.5])
    angles = ("rotate_0", "rotate_15", "rotate_0.5")
    assert data.names == tuple(f"{a}_sigma_{s}" for a in angles for s in ("0", "4.5"))
    assert [d.source.removeprefix("tensors in memory") for d in data][:4] == [
        "",
        " + N(0, 4.5²)",
        ", rotated by 15°",
        ", rotated by 15° + N(0, 4.5²)",
    ]
    assert data["rotate_0_sigma_0"].train.views == Views()
    for split in data["rotate_0.5_sigma_4.5"].splits.values():
        assert split.views == Views(("rotate_0.5",), sigma=4.5)


WHOLE = synthetic_domains(examples=31)
HELD_OUT = WHOLE.with_validation(0.5, seed=1)


@given(st.integers(1, 12), st.integers(0, 2**63 - 1), st.booleans())
def test_every_image_is_in_one_domain_and_sizes_differ_by_one_at_most(domains, seed, with_val):
    base = HELD_OUT if with_val else WHOLE
    data = grid([float(i) for i in range(domains)], seed=seed, base=base)
    for split in ("train", "test", *(["val"] if with_val else [])):
        whole = base["a"].splits[split].rows - base["a"].splits[split].first
        dealt = rows(data, split)
        assert sorted(chain(*dealt)) == sorted(whole)
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
        assert all(own == sorted(own) for own in dealt)
    assert all((domain.val is not None) == with_val for domain in data)


def test_who_gets_what_depends_on_the_seed_and_the_base_domain():
    one = grid()
    other = grid([float(i) for i in range(100, 106)], base=synthetic_domains(seed=1), name="x")
    assert rows(one, "train") == rows(other, "train")
    assert rows(grid(seed=1), "train") != rows(one, "train")
    assert rows(grid(domain="b"), "train") != rows(one, "train")


def test_the_dealing_is_what_it_has_always_been():
    """A change here would silently be another data set under old names."""
    dealt = [[3, 10], [7, 11], [2, 4], [1, 8], [0, 9], [5, 6]]
    assert rows(grid(base=sized(12, 6)), "train") == dealt


def test_what_cannot_be_dealt_is_refused():
    with refused("'c'", "a, b"):
        grid(domain="c")
    with refused("a/test", "30 images", "31 domains"):
        grid(angles=[float(i) for i in range(31)])


DEGREES, NUMBERS = "one or more different degrees", "one or more different numbers"


@pytest.mark.parametrize(
    ("data", "override", "words"),
    [
        ("digits_rotated", "data.angles=[0,360]", DEGREES),
        ("digits_rotated", "data.angles=[0,.nan]", DEGREES),
        ("digits_rotated", "data.sigmas=[-1]", NUMBERS),
        ("digits_rotated", "data.domain=usps", "one of mnist, svhn"),
        ("digits_rotated", "data.angles=[15]", "a mixture needs two"),
        *(
            ("digits_noise", f"data.sigmas=[{sigmas}]", "two or more different numbers")
            for sigmas in ("4", "", "-1,4", "0,0.0", "0,.inf")
        ),
    ],
)
def test_settings_out_of_range(data, override, words):
    with refused(override.partition("=")[0], words):
        composed(f"data={data}", override)


def test_noisy_copies_of_the_mini_digits_hold_out_the_same_images(prepared_cache):
    given = "data=digits_noise", "data.domain=printed", "data.sigmas=[0,60]"
    config = composed(*given, "data.validation=0.2", f"paths.cache={prepared_cache}")
    data = load_domains(config, silent)
    assert data.names == config.data.names()
    assert np.array_equal(data[0].val.rows, data[1].val.rows)
    assert np.array_equal(data[0].train.rows, data[1].train.rows)


def test_extra_digits_are_svhns_alone():
    with refused("data.svhn.extra=true", "mnist"):
        load_domains(composed("data=digits_rotated", "data.svhn.extra=true"), lambda _: None)
