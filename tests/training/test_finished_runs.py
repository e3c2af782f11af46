"""Numbers taken from finished runs: f* of regret and p̄ of retrain."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import assert_same_rows, rows, summary

from robustmd.errors import UserError
from robustmd.runs import files

Train = Callable[..., Any]


@pytest.fixture
def train(train: Train) -> Train:
    return partial(train, "training.iterations=4")


def rewrite(outcome: Any, **changes: Any) -> None:
    text = json.dumps(summary(outcome.directory) | changes)
    (outcome.directory / files.SUMMARY).write_text(text, "utf-8")


def method(outcome: Any) -> dict[str, Any]:
    return yaml.safe_load((outcome.directory / files.CONFIG).read_text("utf-8"))["method"]


def test_a_run_from_before_later_keys_and_records_is_not_trained_again(train: Train) -> None:
    path = train("method=opt").directory
    config = yaml.safe_load((path / files.CONFIG).read_text("utf-8"))
    environment = json.loads((path / files.ENVIRONMENT).read_text("utf-8"))
    later = {"top": ["extend", "jobs_per_device", "tracking"], "training": ["ema", "patience"]}
    for section, keys in later.items():
        for key in keys:
            del config.get(section, config)[key]
    del environment["plugins"]
    (path / files.CONFIG).write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    (path / files.ENVIRONMENT).write_text(json.dumps(environment), "utf-8")
    again = train("method=opt")
    assert (again.status, again.directory) == ("kept", path)


# --- regret -----------------------------------------------------------------------------------


def test_regret_takes_the_smallest_loss_of_individual_runs(train: Train) -> None:
    """Of whatever seed and learning rate: each bounds f*_k from above."""
    tries = [("seed=0",), ("seed=1",), ("seed=1", "training.learning_rate=0.05")]
    losses = {
        (k, i): summary(train("method=individual", f"method.domain={k}", *one).directory)
        for k in (0, 1)
        for i, one in enumerate(tries)
    }
    outcome = train("method=regret", "seed=1")
    expected = [
        min(losses[k, i]["final"]["train"][name]["loss"] for i in range(3))
        for k, name in enumerate("ab")
    ]
    assert method(outcome)["reference"] == pytest.approx(expected, rel=1e-5)
    (note,) = [n for n in summary(outcome.directory)["notes"] if "method.reference" in n]
    assert "smallest final training loss of individual runs: a " in note
    assert note.endswith("(of 3)")
    given = [f"{value!r}" for value in method(outcome)["reference"]]
    same = train("method=regret", "seed=1", f"method.reference=[{','.join(given)}]")
    assert (same.status, same.directory) == ("kept", outcome.directory)


def test_regret_asks_for_the_individual_runs_that_are_missing(train: Train) -> None:
    train("method=individual", "method.domain=a")
    train("method=individual", "method.domain=b", "training.iterations=11")  # not the same
    with pytest.raises(UserError, match="no finished individual run of b ") as caught:
        train("method=regret")
    assert "`robustmd train -m method=individual method.domain=b" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_regret_passes_over_runs_on_other_bytes(train: Train) -> None:
    for k in (0, 1):
        outcome = train("method=individual", f"method.domain={k}")
    environment = json.loads((outcome.directory / files.ENVIRONMENT).read_text("utf-8"))
    environment["data_fingerprint"] = "0" * 64
    (outcome.directory / files.ENVIRONMENT).write_text(json.dumps(environment), "utf-8")
    with pytest.raises(UserError, match="no finished individual run of b "):
        train("method=regret")


def test_regret_without_anything_to_gain_on_is_opt(train: Train) -> None:
    opt = train("method=opt", "method.lam=0.1")
    regret = train("method=regret", "method.lam=0.1", "method.reference=[0,0]")
    assert_same_rows(regret.directory, opt.directory)
    assert summary(regret.directory)["regret"] == summary(opt.directory)["regret"]


# --- retrain ----------------------------------------------------------------------------------


def test_the_mean_weights_count_every_iteration(train: Train) -> None:
    whole = "training.iterations=12"
    outcome = train("method=opt", "method.lam=0.1", "logging.every=1", whole)
    found = [
        (row["domain"], float(row["weight"])) for row in rows(outcome.directory, files.WEIGHTS)
    ]
    for domain, mean in summary(outcome.directory)["weights_mean"].items():
        played = [weight for name, weight in found if name == domain]
        assert len(played) == 12
        assert mean == pytest.approx(sum(played) / 12, abs=1e-12)


def test_retrain_trains_at_the_mean_weights_of_the_runs(train: Train) -> None:
    seeds = [train("method=opt", "method.lam=0.1", f"seed={seed}") for seed in (0, 1)]
    opt = seeds[0].directory.parent
    outcome = train("method=retrain", f"method.run={opt}", "seed=1")
    played = [list(summary(run.directory)["weights_mean"].values()) for run in seeds]
    mean = [(a + b) / 2 for a, b in zip(*played, strict=True)]
    assert mean != [0.5, 0.5]
    assert method(outcome)["weights"] == mean
    assert method(outcome)["run"] is None
    weights = [float(row["weight"]) for row in rows(outcome.directory, files.WEIGHTS)]
    assert weights == pytest.approx(mean * (len(weights) // 2), abs=1e-7)
    (note,) = [n for n in summary(outcome.directory)["notes"] if "method.weights" in n]
    assert f"method=opt in {opt} (seeds 0, 1)" in note
    given = ",".join(map(repr, mean))
    assert train("method=retrain", f"method.weights=[{given}]", "seed=1").status == "kept"


def test_one_seeds_folder_is_enough_and_is_quoted_for_its_equals_sign(train: Train) -> None:
    one, _ = (train("method=opt", "method.lam=0.1", f"seed={seed}") for seed in (0, 1))
    outcome = train("method=retrain", f'method.run="{one.directory}"')
    assert method(outcome)["weights"] == list(summary(one.directory)["weights_mean"].values())


def test_retrain_at_uniform_weights_is_even_bit_for_bit(train: Train) -> None:
    even = train("method=even")
    for setting in (f"method.run={even.directory.parent}", "method.weights=[0.5,0.5]"):
        assert_same_rows(train("method=retrain", setting).directory, even.directory)


def test_a_run_that_cannot_be_retrained_from_is_refused(train: Train, tmp_path: Path) -> None:
    opt = train("method=opt")
    individual = train("method=individual")
    vrex = train("method=vrex")
    rewrite(vrex, weights_mean={"a": -0.5, "b": 1.5})
    with pytest.raises(UserError, match=r"needs method.run=FOLDER.*or method.weights"):
        train("method=retrain")
    for path, said in (
        (tmp_path / "nowhere", "no such folder"),
        (tmp_path / "outputs", "runs of several configurations; name one, as "),
        (opt.directory.parent / "seed_1", "no such folder"),
        (individual.directory.parent, "must have one number for each of a, b"),
        (vrex.directory.parent, ">= 0 and of sum 1"),
    ):
        with pytest.raises(UserError, match=said):
            train("method=retrain", f"method.run={path}")
    with pytest.raises(UserError, match=r"method.weights is given as well; leave one out"):
        train("method=retrain", f"method.run={opt.directory.parent}", "method.weights=[0.5,0.5]")
    rewrite(opt, weights_mean=None)
    with pytest.raises(UserError, match=r"weights_mean in .* is None; .*; train that run again"):
        train("method=retrain", f"method.run={opt.directory.parent}")
