"""The command, its files, its checks; and the claim about one noisy domain."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robustmd import cli
from robustmd.registry import METHODS
from robustmd.studies.parallel import side_by_side
from robustmd.studies.planted import runs, study
from robustmd.studies.planted.domains import Setting
from robustmd.studies.planted.factors import BASE, FACTORS, NOISE, Factor, settings_of
from robustmd.studies.planted.methods import Method, methods_compared
from robustmd.studies.planted.results import Results
from robustmd.studies.planted.runs import run_cells
from robustmd.studies.saddle import SaddlePoint

IMAGES = ("suboptimality", "excess", "noise")
FILES = {"planted.md", "planted.csv", "runs.csv"} | {
    f"{name}.{kind}" for name in IMAGES for kind in ("png", "pdf")
}
COMPARED = methods_compared()
NAMES = [method.name for method in COMPARED]


def test_quick_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["planted", "--out", str(tmp_path / "r"), "--quick"]) == 0
    folder = tmp_path / "r" / "planted"
    assert {path.name for path in folder.iterdir()} == FILES
    assert "1,568 runs; optima exact within" in capsys.readouterr().out
    with (folder / "runs.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    # 7 settings (5 factors' ends share the base; K's are 2 and 50) × 2 seeds × 14 methods × 8
    assert len(rows) == 7 * 2 * 14 * 8
    assert sum(row["chosen"] == "True" for row in rows) == 7 * 2 * 14
    assert all(float(row["suboptimality"]) > 0 for row in rows)
    text = (folder / "planted.md").read_text(encoding="utf-8")
    assert all(text.count(f"\n| {name} |") == 5 for name in NAMES)
    check_the_csv_is_of_the_chosen_runs(folder, rows)


def check_the_csv_is_of_the_chosen_runs(folder: Path, rows: list[dict[str, str]]) -> None:
    with (folder / "planted.csv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    noisy = [
        float(row["suboptimality"])
        for row in rows
        if row["first_flips"] == "0.45" and row["method"] == "opt" and row["chosen"] == "True"
    ]
    (found,) = [
        row
        for row in table
        if (row["factor"], row["level"], row["method"], row["measure"])
        == ("label noise", "0.45", "opt", "suboptimality")
    ]
    assert float(found["mean"]) == pytest.approx(np.mean(noisy), rel=1e-12)
    assert float(found["std"]) == pytest.approx(np.std(noisy, ddof=1), rel=1e-9)
    assert found["seeds"] == "2"


def test_mistakes_are_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["planted", "--seeds", "1"]) == 2
    assert "--seeds 1" in capsys.readouterr().err
    file = tmp_path / "file"
    file.touch()
    assert cli.main(["planted", "--quick", "--out", str(file)]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:Data has no positive values")
def test_a_planted_mistake_is_found_named_and_code_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An optimum that is 0.3 nats too high, with a certificate that claims to be exact."""
    solve = runs.solve_optimum

    def wrong(sample):
        right = solve(sample)
        best = right.worst_case
        too_high = SaddlePoint(best.model, best.weights, best.upper + 0.3, best.lower + 0.3)
        return replace(right, worst_case=too_high)

    few = tuple(method for method in COMPARED if method.name in ("even", "opt"))
    monkeypatch.setattr(study, "methods_compared", lambda: few)
    monkeypatch.setattr(study, "FACTORS", (NOISE,))
    command = ["planted", "--quick", "--out", str(tmp_path)]
    assert cli.main(command) == 0
    monkeypatch.setattr(runs, "solve_optimum", wrong)
    assert cli.main(command) == 1
    line = r"Setting\(.*\), seed \d, opt \(lam=\S+, lr=\S+\): suboptimality -\S+ is below"
    assert re.search(line, capsys.readouterr().err)


@pytest.mark.slow
def test_two_processes_find_what_one_does() -> None:
    jobs = [([setting], (0, 1), COMPARED[:3], 5) for setting in (BASE, Setting(2))]
    alone, beside = ([*side_by_side(run_cells, jobs, workers)] for workers in (1, 2))
    assert alone == beside


def test_the_factors_share_their_base() -> None:
    assert len(settings_of(FACTORS)) == sum(len(factor.levels) for factor in FACTORS) - 4
    assert all(BASE in [setting for _, setting in factor.levels] for factor in FACTORS)


@pytest.fixture(scope="module")
def noisy() -> Results:
    """Three seeds of the domain with 45 % flipped labels, one configuration a method."""
    own = {"even": {}, "afl": {"eta": 0.1}, "groupdro": {"eta": 0.1}, "minimax": {"eta": 0.1}}
    own["minimax"] = {"step": "constant", "eta": 0.1}
    own |= {name: {"lam": 0.01} for name in ("opt", "kl", "regret")}
    methods = tuple(Method(METHODS[name], (keys,), (0.3,)) for name, keys in own.items())
    factor = Factor(NOISE.name, NOISE.label, NOISE.levels[-1:])
    cells = run_cells([factor.levels[0][1]], [0, 1, 2], methods, 300)
    return Results((factor,), (0, 1, 2), methods, 300, tuple(cells))


@pytest.mark.parametrize("name", ["afl", "groupdro", "minimax", "opt", "kl"])
def test_a_noisy_domain_takes_the_weight_of_a_worst_case_method(noisy: Results, name: str) -> None:
    setting = noisy.factors[0].levels[0][1]
    assert min(noisy.values(setting, name, "weight")) > 0.5
    assert noisy.seeds_below(setting, name, "suboptimality") == 3


def test_a_noisy_domain_does_not_take_regrets_weight(noisy: Results) -> None:
    setting = noisy.factors[0].levels[0][1]
    assert max(noisy.values(setting, "regret", "weight")) < 0.5
    regret = noisy.estimate(setting, "regret", "excess").mean
    clean = noisy.estimate(setting, "regret", "clean").mean
    for other in ("afl", "groupdro", "minimax", "opt", "kl"):
        assert regret < noisy.estimate(setting, other, "excess").mean / 3
        assert clean < noisy.estimate(setting, other, "clean").mean


def test_the_chosen_configuration_has_the_smallest_validation_loss() -> None:
    methods = tuple(method for method in COMPARED if method.name in ("opt", "vrex"))
    (cell,) = run_cells([Setting(2, mean_size=30)], [0], methods, 20)
    for method in methods:
        own = [run for run in cell.runs if run.method == method.name]
        assert cell.chosen(method.name).validation == min(run.validation for run in own)


def test_a_run_that_diverges_is_counted_and_not_chosen() -> None:
    method = Method(METHODS["even"], ({},), (1e200, 0.3))
    (cell,) = run_cells([Setting(2, mean_size=30)], [0], [method], 20)
    results = Results((), (0,), (method,), 20, (cell,))
    assert results.diverged == [("even", "lr=1e+200")]
    assert cell.chosen("even").configuration == "lr=0.3"
