"""scripts/planted.py: what is planted, the optimum, the loop, its files and its checks."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import planted
import pytest
import torch
from _study import one_thread
from planted import NOISE, Method, Setting, Task, draw_splits

ROOT = Path(__file__).parents[2]
FIGURES = ("suboptimality", "excess", "noise")
FILES = {"planted.md", "planted.csv", "runs.csv"} | {
    f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf")
}
BY_NAME = {method.name: method for method in planted.compared_methods()}
SMALL = Setting(num_domains=3, mean_size=30, size_ratio=2.0, first_flips=0.3)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


def test_quick_writes_everything(tmp_path, monkeypatch, capsys):
    chosen = [factor for factor in planted.FACTORS if factor.name in ("label noise", "domains")]
    monkeypatch.setattr(planted, "FACTORS", chosen)
    assert planted.main(["--out", str(tmp_path), "--quick"]) == 0
    folder = tmp_path / "planted"
    assert {path.name for path in folder.iterdir()} == FILES
    assert "896 runs; optima exact within" in capsys.readouterr().out
    runs, table = (pd.read_csv(folder / name) for name in ("runs.csv", "planted.csv"))
    # 4 settings (the base, the noisy one, K = 2 and K = 50) × 2 seeds × 14 methods × 8
    assert len(runs) == 4 * 2 * 14 * 8
    assert runs["chosen"].sum() == 4 * 2 * 14
    assert runs["suboptimality"].min() > 0
    text = (folder / "planted.md").read_text(encoding="utf-8")
    assert all(text.count(f"\n| {name} |") == 5 for name in BY_NAME)
    noisy = runs.query("first_flips == 0.45 and method == 'opt' and chosen")["suboptimality"]
    where = "factor == 'label noise' and level == 0.45 and method == 'opt'"
    (line,) = table.query(f"{where} and measure == 'suboptimality'").to_dict("records")
    assert line["mean"] == pytest.approx(noisy.mean(), rel=1e-12)
    assert line["std"] == pytest.approx(noisy.std(), rel=1e-9)


def test_a_planted_mistake_is_found_named_and_code_1(monkeypatch, tmp_path, capsys):
    """An optimum that is 0.3 nats too high, with a certificate that claims to be exact."""
    solve = planted.solve_saddle

    def wrong(losses, num_parameters):
        best = solve(losses, num_parameters)
        return type(best)(best.model, best.weights, best.upper + 0.3, best.lower + 0.3)

    monkeypatch.setattr(planted, "solve_saddle", wrong)
    monkeypatch.setattr(planted, "FACTORS", (NOISE,))
    assert planted.main(["--quick", "--out", str(tmp_path)]) == 1
    line = r"Setting\(.*\), seed \d, opt \(lam=\S+, lr=\S+\): suboptimality -\S+ is below"
    assert re.search(line, capsys.readouterr().err)


@pytest.mark.parametrize("measure", ["suboptimality", "excess"])
def test_the_page_has_the_published_table(measure):
    table = pd.read_csv(ROOT / "outputs" / "published" / "planted" / "planted.csv.gz")
    rows = table[table["measure"] == measure].set_index(["factor", "level", "method"])
    text = (ROOT / "docs" / "planted.md").read_text("utf-8")
    columns = [("difficulty", 1), ("difficulty", 8), ("size", 30), ("label noise", 0.45)]
    columns += [("domains", 50), ("outlier", 150)]
    for method in table["method"].unique():
        cells = [rows.loc[(*column, method)] for column in columns]
        values = (f"{x['mean']:.4f} ± {x['std']:.4f} ({x.seeds_below_even:.0f})" for x in cells)
        assert f"| {method} | {' | '.join(values)} |" in text


def task_of(setting: Setting, seed: int) -> Task:
    train = draw_splits(setting, seed).train
    return Task(setting, seed, train, planted.solve_optimum(train))


@pytest.mark.parametrize("name", BY_NAME)
def test_the_loop_is_descent_against_the_packages_adversary(name):
    """The last configuration replayed with autograd and the adversary alone; the last steps of the
    lanes are recorded ones."""
    T, task, method = 60, task_of(SMALL, seed=4), BY_NAME[name]
    (models,) = planted.train([task_of(SMALL, seed=1), task], [method], T)
    sizes, alone = SMALL.sizes().tolist(), task.optimum.alone.tolist()
    adversary = method.adversary(method.own[-1], T, sizes, alone)
    batches = planted.draw_batches([task])
    w, mean, mean_p = torch.zeros(10, dtype=torch.float64), 0.0, 0.0
    for t in range(T):
        w.requires_grad_()
        signed = next(batches)[0]
        f = -torch.nn.functional.logsigmoid(signed @ w).mean(dim=1)
        f = f + planted.RIDGE / 2 * (w @ w)
        if adversary.weighs == "current":
            adversary.update(f.detach())
        p = adversary.p.clone()
        (slope,) = torch.autograd.grad(p @ f, w)
        if adversary.weighs == "next":
            adversary.update(f.detach())
        mean, mean_p = mean + w.detach() / T, mean_p + p / T
        w = w.detach() - method.rates[-1] * (1 + np.cos(np.pi * t / T)) / 2 * slope
    assert models.last[1, -1] == pytest.approx(w.numpy(), rel=1e-7)
    assert models.mean[1, -1] == pytest.approx(mean.numpy(), rel=1e-7)
    assert models.mean_weights[1, -1] == pytest.approx(mean_p.numpy(), rel=1e-7)


def test_every_method_has_the_same_budget():
    for method in BY_NAME.values():
        assert len(set(method.configurations())) == 8
    assert BY_NAME["topk"].configurations()[2] == "share=0.25, lr=0.3"
    sizes, alone = [20] * 10, [0.1] * 10
    topks = [BY_NAME["topk"].adversary(own, 10, sizes, alone) for own in BY_NAME["topk"].own]
    assert [topk.k for topk in topks] == [1, 3, 5, 8]


def test_angles_sizes_scales_and_flips_are_planted():
    rules = Setting(num_domains=4, first_angle=150.0).rules(seed=3)
    assert np.rad2deg(np.arccos(rules[:, 0])) == pytest.approx([150, 30, 30, 30])
    sizes = Setting(size_ratio=30.0).sizes()
    assert abs(sizes.sum() - 2500) <= 2
    assert sizes[-1] / sizes[0] == pytest.approx(30.0, rel=0.05)
    train = draw_splits(Setting(scale_ratio=8.0), 0).train
    spread = np.sqrt(np.square(train.signed).mean(axis=(1, 2)))
    assert spread == pytest.approx(np.geomspace(1 / 8, 1, 5), rel=0.1)
    splits, rules = draw_splits(Setting(first_flips=0.4), 1), Setting().rules(1)
    wrong = np.array([(splits.test.signed[k] @ rules[k] < 0).mean() for k in range(5)])
    assert wrong == pytest.approx([0.4, 0.05, 0.05, 0.05, 0.05], abs=0.05)
    assert all((splits.clean.signed[k] @ rules[k] > 0).all() for k in range(5))


def test_settings_of_a_seed_differ_in_the_factor_alone():
    base, noisy, many = (
        draw_splits(setting, 5).train.signed
        for setting in (Setting(), Setting(first_flips=0.45), Setting(num_domains=10))
    )
    assert np.array_equal(base[1:], noisy[1:])
    assert np.array_equal(np.abs(base[0]), np.abs(noisy[0]))
    assert np.array_equal(base, many[:5])


def test_two_domains_that_contradict_each_other_leave_log_2():
    """f_2(w) = f_1(−w): by convexity w = 0 is best."""
    signed = draw_splits(Setting(2), 0).train.signed[0]
    both = planted.Sample(np.stack([signed, -signed]), np.full((2, 500), 1 / 500))
    optimum = planted.solve_optimum(both)
    assert optimum.worst_case.upper == pytest.approx(np.log(2), rel=1e-9)
    assert optimum.worst_case.model == pytest.approx(np.zeros(10), abs=1e-5)
    assert optimum.error < 1e-9


def test_a_noisy_domain_takes_the_weight_of_worst_case_methods_and_not_regrets():
    """Three seeds of 45 % flipped labels, one configuration a method."""
    own = {"even": {}, "afl": {"eta": 0.1}, "opt": {"lam": 0.01}, "regret": {"lam": 0.01}}
    methods = [Method(name, (keys,), (0.3,)) for name, keys in own.items()]
    runs = planted.run_cells([NOISE.levels[0.45]], [0, 1, 2], methods, 300)
    by_method = dict(iter(runs.groupby("method")))
    regret = by_method["regret"]
    assert regret["weight"].max() < 0.5
    for name in ("afl", "opt"):
        assert by_method[name]["weight"].min() > 0.5
        assert regret["excess"].mean() < by_method[name]["excess"].mean() / 3


def test_a_run_that_diverges_is_not_chosen():
    runs = planted.run_cells([SMALL], [0], [Method("even", ({},), (1e200, 0.3))], 20)
    assert runs["validation"][0] == float("inf")
    assert runs["configuration"][runs["chosen"]].tolist() == ["lr=0.3"]
