"""`robustmd planted`: its files, its checks; and the claim about one noisy domain."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from robustmd import cli
from robustmd.registry import METHODS
from robustmd.studies.parallel import side_by_side
from robustmd.studies.planted import runs, study
from robustmd.studies.planted.domains import BASE, FACTORS, NOISE, Setting
from robustmd.studies.planted.methods import Method, methods_compared
from robustmd.studies.planted.runs import Results, run_cells

IMAGES = ("suboptimality", "excess", "noise")
FILES = {"planted.md", "planted.csv", "runs.csv"} | {
    f"{name}.{kind}" for name in IMAGES for kind in ("png", "pdf")
}
COMPARED = methods_compared()


def test_quick_writes_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [factor for factor in FACTORS if factor.name in ("label noise", "domains")]
    monkeypatch.setattr(study, "FACTORS", tuple(chosen))
    assert cli.main(["planted", "--out", str(tmp_path / "r"), "--quick"]) == 0
    folder = tmp_path / "r" / "planted"
    assert {path.name for path in folder.iterdir()} == FILES
    assert "896 runs; optima exact within" in capsys.readouterr().out
    found, table = (pd.read_csv(folder / name) for name in ("runs.csv", "planted.csv"))
    # 4 settings (the base, the noisy one, K = 2 and K = 50) × 2 seeds × 14 methods × 8
    assert len(found) == 4 * 2 * 14 * 8
    assert found["chosen"].sum() == 4 * 2 * 14
    assert found["suboptimality"].min() > 0
    text = (folder / "planted.md").read_text(encoding="utf-8")
    assert all(text.count(f"\n| {method.name} |") == 5 for method in COMPARED)
    noisy = found.query("first_flips == 0.45 and method == 'opt' and chosen")["suboptimality"]
    (line,) = table.query(
        "factor == 'label noise' and level == 0.45 and method == 'opt'"
        " and measure == 'suboptimality'"
    ).to_dict("records")
    assert line["mean"] == pytest.approx(noisy.mean(), rel=1e-12)
    assert line["std"] == pytest.approx(noisy.std(), rel=1e-9)
    assert line["seeds"] == 2


@pytest.mark.parametrize("command", ["planted", "theory"])
def test_mistakes_are_lines(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "--seeds", "1"]) == 2
    assert "--seeds 1" in capsys.readouterr().err
    file = tmp_path / "file"
    file.touch()
    assert cli.main([command, "--quick", "--out", str(file)]) == 2
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
        too_high = replace(best, upper=best.upper + 0.3, lower=best.lower + 0.3)
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
    for one, other in zip(alone, beside, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.fixture(scope="module")
def noisy() -> Results:
    """Three seeds of the domain with 45 % flipped labels, one configuration a method."""
    own = {"even": {}, "afl": {"eta": 0.1}, "groupdro": {"eta": 0.1}}
    own["minimax"] = {"step": "constant", "eta": 0.1}
    own |= {name: {"lam": 0.01} for name in ("opt", "kl", "regret")}
    methods = tuple(Method(METHODS[name], (keys,), (0.3,)) for name, keys in own.items())
    factor = replace(NOISE, levels=NOISE.levels[-1:])
    cells = run_cells([factor.levels[0][1]], [0, 1, 2], methods, 300)
    return Results((factor,), methods, 300, cells)


def test_a_noisy_domain_takes_the_weight_of_worst_case_methods_and_not_regrets(
    noisy: Results,
) -> None:
    setting = noisy.factors[0].levels[0][1]
    regret = noisy.chosen(setting, "regret")
    assert regret["weight"].max() < 0.5
    for name in ("afl", "groupdro", "minimax", "opt", "kl"):
        other = noisy.chosen(setting, name)
        assert other["weight"].min() > 0.5
        assert noisy.seeds_below(setting, name, "suboptimality") == 3
        assert regret["excess"].mean() < other["excess"].mean() / 3
        assert regret["clean"].mean() < other["clean"].mean()


def test_the_chosen_configuration_has_the_smallest_validation_loss() -> None:
    methods = tuple(method for method in COMPARED if method.name in ("opt", "vrex"))
    found = run_cells([Setting(2, mean_size=30)], [0], methods, 20)
    for _, own in found.groupby("method"):
        assert own["validation"][own["chosen"]].tolist() == [own["validation"].min()]


def test_a_run_that_diverges_is_not_chosen() -> None:
    method = Method(METHODS["even"], ({},), (1e200, 0.3))
    found = run_cells([Setting(2, mean_size=30)], [0], [method], 20)
    assert found["validation"][0] == float("inf")
    assert found["configuration"][found["chosen"]].tolist() == ["lr=0.3"]
