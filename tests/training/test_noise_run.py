"""Whole runs on noisy, turned and cropped domains: they go on exactly and measure the same."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tiny import summary, synthetic_domains

from robustmd.commands import evaluate
from robustmd.data_sets.noise_and_rotation import noise_copies
from robustmd.domains import DomainSet, Views


@pytest.fixture
def domains() -> DomainSet:
    """Two copies with noise, and a third that is turned, cropped and noisy as well."""
    copies = noise_copies(synthetic_domains(), "a", [0.0, 40.0, 80.0], "digits_noise")
    last = copies["sigma_80"]
    turned = replace(last.train, views=Views(("identity", "rotate_45"), sigma=80.0))
    return replace(copies, domains=(*copies.domains[:2], replace(last, train=turned)))


@pytest.mark.parametrize("after", [3, 7])
def test_an_interrupted_run_and_evaluate_see_the_same_noise(
    gone_on: Callable[..., Any], capsys: pytest.CaptureFixture[str], after: int
) -> None:
    resumed, whole = gone_on("seed=5", after=after)
    ours, theirs = (run / "predictions.npz" for run in (resumed, whole))
    assert ours.read_bytes() == theirs.read_bytes()
    counts = {name: m["examples"] for name, m in summary(whole)["final"]["train"].items()}
    assert counts == {"sigma_0": 60, "sigma_40": 60, "sigma_80": 120}  # with its variants
    assert evaluate.main([str(resumed)]) == 0
    assert "agrees with summary.json" in capsys.readouterr().out
