"""`robustmd theory`: its files, its slopes, its verdicts and its checks."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robustmd import cli
from robustmd.adversary import L2, ProjectedAscent
from robustmd.studies.theory import study
from robustmd.studies.theory.experiments import Experiment, Measure
from robustmd.studies.theory.runs import Constants, Runs
from robustmd.studies.theory.study import log_slope, measured_slope, row_of

FILES = {
    *("regret_bound.png", "regret_bound.pdf", "regret_bound.csv", "runs.csv"),
    *(f"convergence.{kind}" for kind in ("png", "pdf", "md", "tex", "csv")),
}
T = [100, 316, 1000, 3162, 10000]


@pytest.fixture(autouse=True)
def quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "QUICK_HORIZONS", (60, 200))


def test_quick_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["theory", "--out", str(tmp_path / "r"), "--quick", "--seeds", "3"]) == 0
    folder = tmp_path / "r" / "theory"
    assert {path.name for path in folder.iterdir()} == FILES
    said = capsys.readouterr().out
    for number in ("4975.2469", "36516.463", "74077.553", "0.4929"):
        assert number in said
    assert "regret at most its bound at μ_obs in 30 of 30 runs" in said  # 5 methods × 2 T × 3 seeds
    assert (folder / "convergence.tex").read_text(encoding="utf-8").isascii()
    curve = pd.read_csv(folder / "regret_bound.csv", keep_default_na=False)
    assert curve["c"][0] == 0
    assert curve["note"][curve["regret_bound"].idxmin()] == "c*"
    rows, runs = (pd.read_csv(folder / name) for name in ("convergence.csv", "runs.csv"))
    assert len(rows) == 10
    assert rows["verdict"].iloc[-1] == "nothing proved"
    assert len(runs) == 8 * 2 * 3
    assert runs.loc[runs["result"] == "Theorem 4, as printed", "gradient"].min() >= 4
    gaps = runs[runs["result"] == "Lemma 1"].groupby("T")["duality_gap"]
    means = rows.loc[0, [f"mean_T={horizon}" for horizon in (60, 200)]]
    assert means.tolist() == pytest.approx(gaps.mean().tolist())
    assert (gaps.min() > 0).all()


class WrongStep(ProjectedAscent):
    """A planted mistake: the step runs downhill."""

    def _aim(self, f: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return -h


def experiment_on(problem, rule=ProjectedAscent) -> Experiment:
    runs = Runs(problem, lambda T: rule(3, L2(), 0.1, c=0.0), lambda T: 0.1)
    gradient = Measure("‖∇L‖²", "gradient", "T^(-1/2)", lambda T: T**-0.5)
    return Experiment("Theorem 2", "L2", runs, Constants(9.0, 9.0, 9.0, 9.0), (gradient,))


def test_a_planted_mistake_is_found_named_and_code_1(
    logistic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["theory", "--quick", "--seeds", "2", "--out", str(tmp_path)]
    right, wrong = (experiment_on(logistic, rule) for rule in (ProjectedAscent, WrongStep))
    right = replace(right, constants=replace(right.constants, gamma=0.1))
    monkeypatch.setattr(study, "QUICK_HORIZONS", (100, 1000))
    monkeypatch.setattr(study, "_experiments", lambda: [right])
    assert cli.main(command) == 0
    assert re.search(r"Theorem 2 \(L2\): gamma reached \S+, assumed 0.1", capsys.readouterr().out)
    monkeypatch.setattr(study, "_experiments", lambda: [wrong])
    assert cli.main(command) == 1
    text = capsys.readouterr()
    where = r"Theorem 2 \(L2\) on logistic regression, T=\d+, seed=\d"
    assert re.search(rf"{where}: regret \S+ exceeds", text.err)
    assert re.search(r"in [0-3] of 4 runs", text.out)


@pytest.mark.parametrize(("exponent", "verdict"), [(-0.51, "holds"), (-0.49, "not shown")])
def test_verdicts_are_the_criterion(logistic, exponent: float, verdict: str) -> None:
    experiment = experiment_on(logistic)
    lines = [{"T": t, "seed": s, "gradient": t**exponent} for t in (50, 100) for s in (0, 1)]
    assert row_of(experiment, experiment.measures[0], pd.DataFrame(lines)).verdict == verdict


@given(st.floats(-2, 1), st.floats(1e-6, 1e6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_power_law_gives_its_exponent(exponent, factor):
    values = factor * np.array(T)[:, None] ** exponent * np.ones((1, 5))
    slope, low, high = measured_slope(T, values)
    # Least squares over 5 points and 2 unknowns is as exact as for an input off by 100u. With
    # columns of length 1 the condition is 8.4 for these T, the solution at most 45 long, and the
    # slope 1/15.9 of its part: 8.4 · 200u · 45/15.9 < 5000u; the values' own 8u + 2u|log| are less.
    slack = 5000 * 2.0**-53
    assert slope == pytest.approx(exponent, rel=0, abs=slack)
    # Each of 5 slopes is off their mean by 2 slack at most: t_4 sqrt(4/5 · 5) · 2 slack, both ways.
    assert high - low <= 2 * 2.78 * 2 * 2 * slack


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        noise = np.exp(0.2 * rng.standard_normal((5, 10)) - 0.02)  # mean 1
        _, low, high = measured_slope(T, np.array(T)[:, None] ** -0.5 * noise)
        inside += low <= -0.5 <= high
    assert 0.91 <= inside / 400 <= 0.99


def test_for_two_seeds_the_interval_is_worked_by_hand():
    # T = 1, e: the slope is log of the ratio. Seeds give ratios e^-1 and e^-2 from 1.
    values = np.array([[1.0, 1.0], [np.exp(-1), np.exp(-2)]])
    slope, _, high = measured_slope([1, np.e], values)
    assert slope == pytest.approx(np.log((np.exp(-1) + np.exp(-2)) / 2))
    half = 12.7062047 * np.sqrt(0.5 * (0.25 + 0.25))  # t_1; left-out slopes −2 and −1
    assert high - slope == pytest.approx(half)


def test_a_mean_that_is_not_positive_has_no_slope():
    assert np.isnan(log_slope([1, 2], [1.0, 0.0]))
    assert np.isnan(measured_slope([1, 2], np.array([[1.0, 1.0], [-1.0, 0.5]]))[0])
