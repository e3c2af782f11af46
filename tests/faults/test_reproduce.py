"""`robustmd reproduce RUN_DIR`: the four verdicts, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from faults.conftest import Train
from faults.outcomes import ends_well, outcome_of
from faults.tries import copied, with_keys

from robustmd.config.loading import load_domains
from robustmd.runs.reader import collect
from robustmd.runs.run import Run
from robustmd.training import evaluate as evaluation
from robustmd.training.evaluate import compare, environment_differences


def test_the_same_bytes_again_are_identical(train: Train, finished: Path) -> None:
    code, out, err = outcome_of(["reproduce", str(finished)])
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == [
        "identical: 24 measurements and every weight are the same",
        "  in the same environment",
    ]


def test_it_says_what_else_it_ran_on_and_keeps_what_it_made(
    train: Train, finished: Path, tmp_path: Path
) -> None:
    run = copied(finished, tmp_path)
    with_keys(run / "environment.json", threads=8)
    arguments = ["--out", str(tmp_path / "again"), "runtime.threads=1"]  # in any order
    code, out, _ = outcome_of(["reproduce", str(run), *arguments])
    assert code == 0
    assert "  threads 8 → 1" in out.splitlines()
    assert len(collect(tmp_path / "again").runs) == 1


def test_other_numbers_are_different(train: Train, finished: Path, tmp_path: Path) -> None:
    run = copied(finished, tmp_path)
    change_every_loss(run, 1.5)
    code, out, _ = outcome_of(["reproduce", str(run), "--out", str(tmp_path / "again")])
    assert code == 1
    assert "different since iteration 0: losses by up to" in out


def test_mistakes_are_lines(train: Train, finished: Path, cut_off: Path, tmp_path: Path) -> None:
    for run, *arguments in (
        (finished, "seed=1"),
        (finished, "runtime.device=cuda:99"),
        (finished, "method.lam=2"),
        (finished, "--out", str(finished.parents[3])),  # its own tree is no place for the copy
        (cut_off,),
        (tmp_path,),
    ):
        assert ends_well(["reproduce", str(run), *arguments]) == 2


@pytest.mark.parametrize("command", ["evaluate", "reproduce"])
def test_the_callers_folders_are_used_and_not_the_records(
    train: Train, finished: Path, tmp_path: Path, prepared_cache: Path, monkeypatch, command
) -> None:
    run = copied(finished, tmp_path)
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["paths"] = dict.fromkeys(("data", "cache", "outputs"), str(tmp_path / "elsewhere"))
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setattr(evaluation, "load_domains", load_domains)
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
    code, _, err = outcome_of([command, str(run)])
    assert (code, "was trained on other data" in err) == (2, True)  # the images were looked for
    assert not (tmp_path / "elsewhere").exists()


def change_every_loss(run: Path, factor: float) -> None:
    path = run / "metrics.csv"
    head, *lines = path.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    for row in cells:
        row[4] = repr(float(row[4]) * factor)
    path.write_text("\n".join([head, *(",".join(row) for row in cells), ""]))
    summary = json.loads((run / "summary.json").read_text())
    for part in summary["final"].values():
        for measure in part.values():
            measure["loss"] *= factor
    for measure in summary["worst"].values():
        measure["loss"] *= factor
    (run / "summary.json").write_text(json.dumps(summary))


# --- the verdicts, on made-up runs ---------------------------------------------------------------


Make = Callable[..., Run]


@pytest.fixture
def make(outputs) -> Make:
    """A finished run with these worst losses [nats] and accuracies [points]."""

    def go(
        seed: int, loss: float, accuracy: float, *, start: float = 2.3, folder: str = "0"
    ) -> Run:
        final = {"a": (loss, accuracy), "b": (0.1, 99.0)}
        curve = [{"a": start, "b": start}]
        path = outputs.run("opt", seed, train=final, test=final, curve=curve, folder=folder)
        return collect(path).runs[0]

    return go


def test_the_largest_differences_are_named_and_since_when(make: Make) -> None:
    old = make(0, 0.5, 80.0)
    assert compare(old, make(0, 0.5, 80.0, folder="1"))[0]
    same, words = compare(old, make(0, 0.54, 81.0, folder="2"))
    assert not same
    assert "losses by up to 0.04 (0.04 at the end)" in words
    assert "accuracies by up to 1.00 points (1.00 at the end)" in words
    assert "different since iteration 0" not in words
    assert (
        "different since iteration 0"
        in compare(old, make(0, 0.5, 80.0, start=2.301, folder="3"))[1]
    )


def test_measurements_of_other_things_are_different(make: Make, outputs) -> None:
    old = make(0, 0.5, 80.0)
    path = outputs.run("opt", 0, curve=[{"a": 2.3, "b": 2.3}] * 2, folder="1")
    assert "measured other things" in compare(old, collect(path).runs[0])[1]


def test_what_differs_in_the_environment_is_named() -> None:
    old = {"device": "cpu", "threads": 1, "packages": {"torch": "2.4", "numpy": "2.0"}}
    new = {"device": "cpu", "threads": 8, "packages": {"torch": "2.5", "numpy": "2.0"}}
    assert environment_differences(old, new) == ["threads 1 → 8", "torch 2.4 → 2.5"]
    assert environment_differences(old, {**old, "packages": None}) == []
