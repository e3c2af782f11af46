"""scripts/theory.py: its files, losses, runs, slopes and checks; the saddle point's solver."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import theory
import torch
from _study import duality_gap, one_thread, solve_saddle

from robustmd.adversary import L2, ProjectedAscent, RegretMeter
from robustmd.adversary import BestResponse as Response
from robustmd.adversary import MultiplicativeWeights as Weights

FIGURES = ("regret_bound", "convergence")
FILES = {"regret_bound.csv", "convergence.md", "convergence.csv", "runs.csv"} | {
    f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf")
}


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def logistic():
    """3 domains of 12 examples, 2 features, 3 classes; mini-batches of 4."""
    return theory.Logistic(
        3, 12, 3, batch_size=4, ridge=0.1, seed=1, disagreement=0.7, separation=1.0
    )


def test_quick_writes_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(theory, "QUICK_HORIZONS", (60, 200))
    assert theory.main(["--out", str(tmp_path), "--quick", "--seeds", "3"]) == 0
    folder = tmp_path / "theory"
    assert {path.name for path in folder.iterdir()} == FILES
    said = capsys.readouterr().out
    for number in ("4975.2469", "36516.463", "74077.553", "0.4929"):
        assert number in said
    assert "regret at most its bound at μ_obs in 30 of 30 runs" in said  # 5 methods × 2 T × 3 seeds
    rows, runs = (pd.read_csv(folder / name) for name in ("convergence.csv", "runs.csv"))
    assert len(rows) == 10
    assert rows["verdict"].iloc[-1] == "nothing proved"
    assert len(runs) == 8 * 2 * 3
    assert runs.loc[runs["result"] == "Theorem 4, as printed", "gradient"].min() >= 4
    gaps = runs[runs["result"] == "Lemma 1"].groupby("T")["duality_gap"]
    means = rows.loc[0, ["mean_T=60", "mean_T=200"]]
    assert means.tolist() == pytest.approx(gaps.mean().tolist())
    assert (gaps.min() > 0).all()


class WrongStep(ProjectedAscent):
    """A planted mistake: the step runs downhill."""

    def _aim(self, f: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return -h


def experiment_on(problem, rule=ProjectedAscent):
    measure = theory.Measure("‖∇L‖²", "gradient", "T^(-1/2)", lambda T: T**-0.5)
    constants = theory.Constants(9.0, 9.0, 9.0, 9.0)
    return theory.Experiment(
        *("Theorem 2", "L2", problem, constants, lambda T: rule(3, L2(), 0.1, c=0.0)),
        *(lambda T: 0.1, (measure,)),
    )


def test_a_planted_mistake_is_found_named_and_code_1(logistic, monkeypatch, tmp_path, capsys):
    command = ["--quick", "--seeds", "2", "--out", str(tmp_path)]
    right, wrong = (experiment_on(logistic, rule) for rule in (ProjectedAscent, WrongStep))
    right = replace(right, constants=right.constants._replace(gamma=0.1))
    monkeypatch.setattr(theory, "QUICK_HORIZONS", (100, 1000))
    monkeypatch.setattr(theory, "experiments", lambda: [right])
    assert theory.main(command) == 0
    assert re.search(r"Theorem 2 \(L2\): gamma reached \S+, assumed 0.1", capsys.readouterr().out)
    monkeypatch.setattr(theory, "experiments", lambda: [wrong])
    assert theory.main(command) == 1
    where = r"Theorem 2 \(L2\) on logistic regression, T=\d+, seed=\d"
    assert re.search(rf"{where}: regret \S+ exceeds", capsys.readouterr().err)


@pytest.mark.parametrize("rule", ["L2", "multiplicative weights", "best response"])
def test_a_lane_is_the_run_of_its_seed_alone(logistic, rule):
    """Replayed with the package's adversary and meter, one run at a time."""
    make = {
        "L2": lambda T: ProjectedAscent(3, L2(), 0.5, c=2.0),
        "multiplicative weights": lambda T: Weights(3, step="lemma1", total_steps=T, gamma=3.0),
        "best response": lambda T: Response(3, L2(), 0.5, every=1),
    }[rule]
    T, step = 60, 0.1
    with torch.no_grad():
        runs = theory.run_all_lanes(logistic, make, lambda T: step, [T, 25], [3, 4])
    ((_, outcome),) = runs[(runs["T"] == T) & (runs["seed"] == 4)].iterrows()
    adversary = make(T)
    meter, W = RegretMeter.of(adversary), logistic.start(4)
    batches, squared, models = theory.draw_batches(logistic, [4]), 0.0, []
    for _ in range(T):
        lane = W.unsqueeze(0).requires_grad_()
        f, batch_f = logistic.evaluate(lane, next(batches))
        if adversary.feeds_on == "dataset":
            adversary.update(f[0].detach())
        p = adversary.p.unsqueeze(0)
        g, batch_g = (theory.gradient(p, losses, lane) for losses in (f, batch_f))
        squared += float(g.square().sum())
        models.append(W)
        if adversary.feeds_on == "batch":
            meter.update(adversary.update(batch_f[0].detach()))
        W = W - step * batch_g[0]
    if adversary.feeds_on == "batch":
        assert outcome["regret"] == pytest.approx(meter.summary(adversary)["measured"], rel=1e-9)
    assert outcome["gradient"] == pytest.approx(squared / T, rel=1e-12)
    assert outcome["mean_model"] == pytest.approx(torch.stack(models).mean(0).numpy(), rel=1e-12)


def test_theorem_4_is_not_true_as_printed_and_true_with_the_regularizer():
    def gradients(make):
        runs = make(theory.Parabolas(), theory.PARABOLAS).run([30, 3000], range(5))
        return runs.pivot(index="T", columns="seed", values="gradient").to_numpy()

    printed = gradients(theory.theorem4_as_printed)
    assert printed.min() >= 4
    # η = 1/(σ√T); |w| ends below 2η, after at most 1/η steps at ≤ 16
    assert printed[-1] == pytest.approx(4, abs=0.35)
    assert gradients(theory.theorem4).mean(axis=1)[-1] < 0.25


def test_the_constants_bound_what_other_seeds_meet(logistic):
    constants, seeds = theory.estimate_constants(logistic), range(10)
    W = torch.stack([logistic.start(seed) for seed in seeds])
    batches = theory.draw_batches(logistic, seeds)
    for _ in range(200):
        _, batch_f = logistic.evaluate(W.requires_grad_(), next(batches))
        corners = [k.expand(10, 3) for k in torch.eye(3).double()]
        gradients = torch.stack([theory.gradient(p, batch_f, W) for p in corners])
        assert gradients.norm(dim=-1).max() <= constants.sigma
        assert batch_f.norm(dim=1).max() <= constants.gamma
        W = W.detach() - 0.05 * gradients.mean(0)


def test_the_saddle_point_is_certified_and_optimal():
    """As docs/theory.md prints it."""
    problem = theory.Logistic(3)
    saddle = solve_saddle(problem.losses_and_jacobian, problem.num_parameters)
    p = saddle.weights
    f, J = problem.losses_and_jacobian(saddle.model)
    assert -1e-12 <= saddle.upper - saddle.lower < 1e-9
    assert abs(duality_gap(problem.losses_and_jacobian, saddle.model, p)) < 1e-9
    assert np.abs(p @ J).max() < 1e-6  # stationary in W
    assert np.all(p[f < f.max() - 1e-6] == 0)  # mass on the worst domains only
    assert p == pytest.approx([0.288, 0.545, 0.167], abs=1e-3)


@pytest.mark.parametrize(("exponent", "verdict"), [(-0.51, "holds"), (-0.49, "not shown")])
def test_verdicts_are_the_criterion(logistic, exponent: float, verdict: str):
    experiment = experiment_on(logistic)
    lines = [{"T": t, "seed": s, "gradient": t**exponent} for t in (50, 100) for s in (0, 1)]
    row = theory.row_of(experiment, experiment.measures[0], pd.DataFrame(lines))
    assert row.slope == pytest.approx(exponent)
    assert row.verdict == verdict


def test_for_two_seeds_the_interval_is_worked_by_hand():
    # T = 1, e: the slope is log of the ratio. Seeds give ratios e^-1 and e^-2 from 1.
    values = np.array([[1.0, 1.0], [np.exp(-1), np.exp(-2)]])
    slope, _, high = theory.measured_slope([1, np.e], values)
    assert slope == pytest.approx(np.log((np.exp(-1) + np.exp(-2)) / 2))
    half = 12.7062047 * np.sqrt(0.5 * (0.25 + 0.25))  # t_1; left-out slopes −2 and −1
    assert high - slope == pytest.approx(half)
    assert np.isnan(theory.measured_slope([1, 2], np.array([[1.0, 1.0], [-1.0, 0.5]]))[0])
