"""Whole runs on noisy, turned and cropped domains: they go on exactly and measure the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import rows, signalled_at, summary, synthetic_domains

from robustmd.commands import evaluate
from robustmd.data_sets.noise_and_rotation import noise_copies
from robustmd.domains import DomainSet, Views
from robustmd.training import evaluation
from robustmd.training import run as run_module

Train = Callable[..., Any]


@pytest.fixture
def domains(monkeypatch: pytest.MonkeyPatch) -> DomainSet:
    """Two copies with noise, and a third that is turned, cropped and noisy as well."""
    copies = noise_copies(synthetic_domains(), "a", [0.0, 40.0, 80.0], "digits_noise")
    last = copies["sigma_80"]
    turned = replace(last.train, views=Views(("identity", "rotate_45"), sigma=80.0))
    found = replace(copies, domains=(*copies.domains[:2], replace(last, train=turned)))
    for module in (run_module, evaluation):
        monkeypatch.setattr(module, "load_domains", lambda config, say: found)
    return found


@pytest.mark.parametrize("after", [3, 7])
def test_an_interrupted_run_sees_the_same_noise_when_it_goes_on(
    domains: DomainSet, train: Train, tmp_path: Path, after: int
) -> None:
    whole = train(outputs=tmp_path / "whole")
    with signalled_at(after):
        assert train().status == "interrupted"
    resumed = train()
    assert resumed.status == "finished"
    for name in ("metrics.csv", "weights.csv"):
        assert rows(resumed.directory, name) == rows(whole.directory, name)
    ours, theirs = (r.directory / "predictions.npz" for r in (resumed, whole))
    assert ours.read_bytes() == theirs.read_bytes()


def test_the_size_of_a_training_set_counts_its_variants(domains: DomainSet, train: Train) -> None:
    final = summary(train("training.iterations=1").directory)["final"]
    counts = {name: m["examples"] for name, m in final["train"].items()}
    assert counts == {"sigma_0": 60, "sigma_40": 60, "sigma_80": 120}


def test_evaluate_measures_with_the_same_noise(
    domains: DomainSet, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = train("seed=5")
    assert evaluate.main([str(outcome.directory)]) == 0
    assert "agrees with summary.json" in capsys.readouterr().out
