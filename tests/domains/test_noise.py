"""Copies of a domain with noise: one set of arrays, K domains, a name for each."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tiny import composed, synthetic_domains

from robustmd import settings
from robustmd.config.loading import load_domains
from robustmd.domains.noise_and_rotation import noise_copies
from robustmd.errors import UserError


def silent(_: str) -> None:
    pass


def test_the_copies_share_all_arrays_and_differ_in_their_noise():
    base = synthetic_domains()
    copies = noise_copies(base, "b", [0, 4, 12.5], "digits_noise")
    assert copies.names == ("sigma_0", "sigma_4", "sigma_12.5")
    assert copies.name == "digits_noise"
    assert copies.classes == base.classes
    for domain, sigma in zip(copies, (0.0, 4.0, 12.5), strict=True):
        for split in ("train", "test"):
            assert domain.split(split).images is base["b"].split(split).images
            assert domain.split(split).labels is base["b"].split(split).labels
            assert domain.split(split).views.sigma == sigma
        assert domain.val is None


@hypothesis_settings(deadline=None)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(0, 300), min_size=1, max_size=4, unique=True),
)
def test_the_fingerprint_is_of_the_noise_and_of_the_base(one, other):
    base = synthetic_domains(examples=6)
    names = [noise_copies(base, "a", sigmas, "n").fingerprint for sigmas in (one, other)]
    assert (names[0] == names[1]) == (one == other)
    assert noise_copies(base, "b", one, "n").fingerprint != names[0]
    changed = synthetic_domains(seed=1, examples=6)
    assert noise_copies(changed, "a", one, "n").fingerprint != names[0]


def test_an_unknown_base_and_a_sigma_given_twice_are_refused(one_line):
    with pytest.raises(UserError) as error:
        noise_copies(synthetic_domains(), "c", [0, 1], "n")
    one_line(error, "'c'", "a, b")
    with pytest.raises(UserError) as error:
        noise_copies(synthetic_domains(), "a", [4, 4.0], "n")
    one_line(error, "one name", "sigma_4")


@pytest.mark.parametrize("sigmas", ["[4]", "[]", "[4,4]", "[-1,4]", "[0,0.0]", "[0,.inf]"])
def test_sigmas_out_of_range(sigmas, one_line):
    with pytest.raises(UserError) as error:
        settings.validate(composed("data=digits_noise", f"data.sigmas={sigmas}"))
    one_line(error, "data.sigmas", "two or more different numbers")


@pytest.mark.parametrize("domain", ["handwritten", "printed"])
def test_the_mini_digits_take_noise_without_any_file(prepared_cache: Path, domain: str):
    config = composed(
        "data=digits_noise",
        f"data.domain={domain}",
        "data.sigmas=[0,60]",
        "data.validation=0.2",
        f"paths.cache={prepared_cache}",
    )
    found = load_domains(config, silent)
    assert found.names == ("sigma_0", "sigma_60")
    assert found["sigma_0"].train.images is found["sigma_60"].train.images
    assert np.array_equal(found["sigma_0"].val.rows, found["sigma_60"].val.rows)


def test_only_the_base_domains_files_are_needed(write_mnist, tmp_path):
    write_mnist(tmp_path / "data" / "MNIST" / "raw")
    overrides = [
        "data=digits_noise",
        "data.verify=false",
        f"paths.data={tmp_path / 'data'}",
        f"paths.cache={tmp_path / 'cache'}",
    ]
    found = load_domains(composed(*overrides), silent)
    assert found.names == ("sigma_0", "sigma_4", "sigma_8", "sigma_12")
    assert "unofficial" in found.notes[0]
    assert not (tmp_path / "data" / "svhn").exists()
