"""Which model is kept, and when training stops early."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import rows, signalled_at, summary, synthetic_domains

from robustmd import cli
from robustmd.errors import UserError
from robustmd.runs import checkpoints, files
from robustmd.runs.reader import collect

Train = Callable[..., Any]
EVEN = ("method=even", "training.schedule=constant")
WATCHED = (*EVEN, "training.learning_rate=0.6", "evaluation.every=2", "data.validation=0.2")


@pytest.fixture
def validated(train: Train) -> Train:
    """Trains on domains that have a validation set."""
    return partial(train, data=synthetic_domains().with_validation(0.2, 0))


def same(one: Path, other: Path, name: str = files.FINAL_MODEL) -> bool:
    models = checkpoints.load_model(one, name), checkpoints.load_model(other, name)
    return all(torch.equal(value, models[1][key]) for key, value in models[0].items())


def best_of(directory: Path, column: str, over: Callable[..., float], sign: int) -> int:
    """The iteration of the best validation, from metrics.csv; the earliest of equals."""
    by_time: dict[int, list[float]] = {}
    for row in rows(directory):
        if row["split"] == "val" and row["iteration"] != "0":
            by_time.setdefault(int(row["iteration"]), []).append(float(row[column]))
    return min(by_time, key=lambda t: sign * over(by_time[t]))


@pytest.mark.parametrize(
    ("by", "column", "over", "sign"),
    [("worst_loss", "loss", max, 1), ("mean_accuracy", "accuracy", sum, -1)],
)
def test_the_kept_model_is_that_of_the_best_validation(
    validated: Train, by: str, column: str, over: Callable[..., float], sign: int
) -> None:
    asked = ("evaluation.keep=best_val", f"evaluation.best_by={by}")
    directory = validated(*WATCHED, *asked).directory
    best = summary(directory)["best"]
    assert (best["iteration"], best["by"]) == (best_of(directory, column, over, sign), by)
    assert best["iteration"] < 12
    shorter = validated(*WATCHED, f"training.iterations={best['iteration']}").directory
    kept, there = (
        checkpoints.load_model(directory, files.BEST_MODEL),
        checkpoints.load_model(shorter),
    )
    assert all(torch.equal(value, there[key]) for key, value in kept.items())
    assert not (shorter / files.BEST_MODEL).exists()


def test_a_run_that_was_cut_off_keeps_the_same_model(validated: Train, gone_on: Train) -> None:
    asked = (*WATCHED, "evaluation.keep=best_val", "training.patience=4")
    directory, undisturbed = gone_on(*asked, after=9, data=validated.keywords["data"])
    for name in (files.FINAL_MODEL, files.BEST_MODEL):
        assert same(directory, undisturbed, name)
    assert summary(directory)["best"] == summary(undisturbed)["best"]


def test_patience_ends_a_run_with_a_whole_last_measurement(validated: Train) -> None:
    asked = (*WATCHED, "training.iterations=40", "evaluation.examples=20", "training.patience=2")
    outcome = validated(*asked)
    found = summary(outcome.directory)
    best, end = found["best"]["iteration"], found["iterations_done"]
    assert (found["stopped_early"], end) == (True, best + 4)
    assert end < found["iterations"] == 40
    assert f"stopped early after iteration {end} of 40" in found["notes"][-1]
    (run,) = collect(outcome.directory.parents[3]).runs
    assert run.final["train"]["a"].examples == 48  # all, though before it was a part
    assert best_of(outcome.directory, "loss", max, 1) == best
    assert validated(*asked).status == "kept"


def test_evaluate_takes_either_model(validated: Train, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(validated(*WATCHED, "evaluation.keep=best_val").directory)
    assert cli.main(["evaluate", run, "--model", "last", "runtime.threads=1"]) == 0
    assert "agrees with summary.json" in capsys.readouterr().out
    assert cli.main(["evaluate", run, "runtime.threads=1", "--model=best"]) == 0
    assert "agrees with metrics.csv" in capsys.readouterr().out
    without = str(validated(*WATCHED).directory)
    assert cli.main(["evaluate", without, "--model=best"]) == 2
    assert "no best model" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["evaluation.keep=best_val", "training.patience=3"])
def test_what_is_chosen_by_validation_needs_it(train: Train, asked: str) -> None:
    with pytest.raises(UserError, match=r"there is none in a, b; .*data\.validation=0\.1"):
        train(asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("evaluation.best_by=best_loss", "must be one of worst_tenth, worst, mean, then _METRIC"),
        ("evaluation.best_by=mean_ece", r"ece is not measured; add it with evaluation\.metrics"),
    ],
)
def test_a_choice_by_what_is_not_there_is_a_line(train: Train, asked: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        train(asked)


def test_a_run_stopped_in_its_last_measurement_keeps_no_checkpoint(train: Train) -> None:
    with signalled_at(11):
        assert train("method=opt").status == "interrupted"
    directory = train("method=opt").directory
    assert summary(directory)["status"] == "finished"
    assert [path.name for path in (directory / files.CHECKPOINTS).iterdir()] == ["final.pt"]
