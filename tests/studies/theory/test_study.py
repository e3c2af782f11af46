"""The command, its files, its verdicts and its checks."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from robustmd import cli
from robustmd.adversary import L2, ProjectedAscent
from robustmd.studies.theory import study
from robustmd.studies.theory.constants import Constants
from robustmd.studies.theory.experiments import Experiment, Measure, gradient_of
from robustmd.studies.theory.results import Result, rows_of
from robustmd.studies.theory.runs import Runs

FILES = {
    *("regret_bound.png", "regret_bound.pdf", "regret_bound.csv", "runs.csv"),
    *(f"convergence.{kind}" for kind in ("png", "pdf", "md", "tex", "csv")),
}


def test_quick_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["theory", "--out", str(tmp_path / "r"), "--quick", "--seeds", "3"]) == 0
    folder = tmp_path / "r" / "theory"
    assert {path.name for path in folder.iterdir()} == FILES
    said = capsys.readouterr().out
    for number in ("4975.2469", "36516.463", "74077.553", "0.4929"):
        assert number in said
    assert "regret at most its bound at μ_obs in 45 of 45 runs" in said  # 5 methods × 3 T × 3 seeds
    with (folder / "convergence.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 10
    assert rows[-1]["verdict"] == "nothing proved"
    assert (folder / "convergence.tex").read_text(encoding="utf-8").isascii()
    with (folder / "runs.csv").open(encoding="utf-8") as stream:
        runs = list(csv.DictReader(stream))
    assert len(runs) == 8 * 3 * 3
    printed = [run for run in runs if run["result"] == "Theorem 4, as printed"]
    assert all(float(run["gradient"]) >= 4 for run in printed)
    lemma = [float(run["duality_gap"]) for run in runs if run["result"] == "Lemma 1"]
    means = np.reshape(lemma, (3, 3)).mean(axis=1)
    assert [float(rows[0][f"mean_T={T}"]) for T in (100, 316, 1000)] == pytest.approx(means)
    assert all(value > 0 for value in lemma)


@pytest.mark.slow
def test_two_processes_find_what_one_does() -> None:
    alone, beside = ([*study.run_all([20, 50], [0, 1], workers)] for workers in (1, 2))
    for one, other in zip(alone, beside, strict=True):
        assert [run.gradient for _, run in one.all_runs()] == [
            run.gradient for _, run in other.all_runs()
        ]


def test_mistakes_are_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["theory", "--seeds", "1"]) == 2
    assert "--seeds 1" in capsys.readouterr().err
    file = tmp_path / "file"
    file.touch()
    assert cli.main(["theory", "--quick", "--out", str(file)]) == 2
    assert "cannot be written" in capsys.readouterr().err


class WrongStep(ProjectedAscent):
    """A planted mistake: the step runs downhill."""

    def _aim(self, f: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return -h


def experiment_on(problem, rule=ProjectedAscent) -> Experiment:
    runs = Runs(problem, lambda T: rule(3, L2(), 0.1, c=0.0), lambda T: 0.1)
    gradient = Measure("‖∇L‖²", gradient_of, lambda T: T**-0.5, "T^(-1/2)", None)
    return Experiment("Theorem 2", "L2", runs, Constants(9.0, 9.0, 9.0, 9.0), (gradient,))


def test_a_planted_mistake_is_found_named_and_code_1(
    logistic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["theory", "--quick", "--seeds", "2", "--out", str(tmp_path)]
    right, wrong = (experiment_on(logistic, rule) for rule in (ProjectedAscent, WrongStep))
    monkeypatch.setattr(study, "_experiments", lambda: [right])
    assert cli.main(command) == 0
    monkeypatch.setattr(study, "_experiments", lambda: [wrong])
    assert cli.main(command) == 1
    text = capsys.readouterr()
    where = r"Theorem 2 \(L2\) on logistic regression, T=\d+, seed=\d"
    assert re.search(rf"{where}: regret \S+ exceeds", text.err)
    assert re.search(r"in [0-5] of 6 runs", text.out)


def test_verdicts_are_the_criterion(logistic) -> None:
    experiment = experiment_on(logistic)
    result = Result(experiment, (0, 1), experiment.runs.run([50, 100], [0, 1]))

    def verdict(exponent: float) -> str:
        outcomes = [
            [replace(run, gradient=run.T**exponent) for run in row] for row in result.outcomes
        ]
        (row,) = rows_of(replace(result, outcomes=outcomes))
        return row.verdict

    assert verdict(-0.51) == "holds"
    assert verdict(-0.49) == "not shown"
