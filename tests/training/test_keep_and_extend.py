"""Which model is kept, when training stops early, and how a finished run becomes a longer one."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import assert_same_rows, rows, signalled_at, summary, synthetic_domains

from robustmd.commands import evaluate
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
    with pytest.raises(UserError, match=r"stopped early .* change nothing"):
        validated(*asked, "training.iterations=50", "extend=true")


def test_evaluate_takes_either_model(validated: Train, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(validated(*WATCHED, "evaluation.keep=best_val").directory)
    assert evaluate.main([run, "--model", "last", "runtime.threads=1"]) == 0
    assert "agrees with summary.json" in capsys.readouterr().out
    assert evaluate.main([run, "runtime.threads=1", "--model=best"]) == 0
    assert "agrees with metrics.csv" in capsys.readouterr().out
    without = str(validated(*WATCHED).directory)
    with pytest.raises(UserError, match="no best model"):
        evaluate.main([without, "--model=best"])


def test_a_kept_model_that_was_changed_is_seen(validated: Train) -> None:
    asked = (*WATCHED, "evaluation.keep=best_val")
    path = validated(*asked).directory / files.BEST_MODEL
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=r"best\.pt is not what it was when the run finished"):
        validated(*asked)


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


@pytest.mark.parametrize(
    ("method", "shorter"), [(EVEN, 6), ((*EVEN, "method=opt", "method.c=1"), 8)]
)
def test_an_extended_run_is_as_one_that_was_as_long_from_the_start(
    train: Train, tmp_path: Path, method: tuple[str, ...], shorter: int
) -> None:
    asked = (*method, "evaluation.examples=20")
    twin = train(*asked, outputs=tmp_path / "twin").directory
    train(*asked, "training.iterations=3")
    first = train(*asked, f"training.iterations={shorter}").directory
    directory = train(*asked, "extend=true").directory
    assert summary(first)["status"] == "finished"
    assert_same_rows(directory, twin)
    assert same(directory, twin)
    said = f"goes on from the end of the run of {shorter} iterations"
    assert summary(directory)["notes"] == [said]


def test_an_extended_run_that_was_cut_off_goes_on(train: Train, tmp_path: Path) -> None:
    twin = train(*EVEN, outputs=tmp_path / "twin").directory
    train(*EVEN, "training.iterations=8")
    with signalled_at(10):
        assert train(*EVEN, "extend=true").status == "interrupted"
    directory = train(*EVEN).directory
    assert_same_rows(directory, twin)
    assert same(directory, twin)


def test_without_a_shorter_run_it_begins_anew(train: Train) -> None:
    found = summary(train("method=even", "extend=true").directory)
    assert found["notes"] == ["extend=true: no finished run has fewer iterations; begun anew"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("training.schedule=cosine", r"training\.schedule=cosine depends on training\.iterations"),
        ("method=opt", r"the step of method=opt .*number as method\.c"),
        ("method=oracle method.every=4", "the step of method=oracle"),
        ("checkpoint.end=false", "kept no state of its end"),
    ],
)
def test_what_cannot_be_extended_is_refused_with_the_reason(
    train: Train, asked: str, said: str
) -> None:
    train(*EVEN, *asked.split(), "training.iterations=8")
    with pytest.raises(UserError, match=said):
        train(*EVEN, *asked.split(), "extend=true")


def test_a_run_stopped_in_its_last_measurement_keeps_no_end_that_is_no_use(train: Train) -> None:
    with signalled_at(11):
        assert train("method=opt").status == "interrupted"
    directory = train("method=opt").directory
    assert summary(directory)["status"] == "finished"
    assert [path.name for path in (directory / files.CHECKPOINTS).iterdir()] == ["final.pt"]


def test_a_damaged_end_is_refused(train: Train) -> None:
    directory = train(*EVEN, "training.iterations=8").directory
    with (directory / "weights.csv").open("r+b") as stream:
        stream.write(b"x")
    with pytest.raises(UserError, match=r"weights\.csv is not what it was then"):
        train(*EVEN, "extend=true")
