"""Domains kept out of training are in no mean, worst case or choice, and stand apart."""

import json
import statistics
from itertools import product

import pandas as pd
import pytest

from robustmd.report import figures
from robustmd.report.front import leave_one_out
from robustmd.report.numbers import Rule, studies
from robustmd.report.tables import runs_csv
from robustmd.runs.listing import list_runs
from robustmd.runs.reader import collect
from robustmd.runs.records import read_records

DOMAINS = ("art", "photo", "sketch")
TRAINED = DOMAINS[:2]
METHODS = ("even", "opt")


def measurement(method, seed, at):
    """Another number for every domain, split, method, seed and time; the unseen are far worse."""
    loss, accuracy = 0.01 * seed + abs(at - 1.7), 60.0 + seed + 3 * at + 2 * (method == "opt")
    far = {"sketch": (30, -40)}
    return {
        split: {
            domain: (loss + 0.1 * k + 0.02 * place + worse, accuracy + 5 * k - place + lower)
            for k, domain in enumerate(DOMAINS)
            for worse, lower in [far.get(domain, (0, 0))]
        }
        for place, split in enumerate(("train", "val", "test"))
    }


@pytest.fixture
def runs(outputs):
    """Two methods, two seeds, sketch kept out, three measurements of train, val and test."""
    for method, seed in product(METHODS, (0, 1)):
        *earlier, last = (measurement(method, seed, at) for at in (1, 2, 3))
        measured = {"earlier": earlier, "train": last["train"], "test": last["test"], "also": last}
        outputs.run(method, seed, data="folder", unseen=["sketch"], **measured)
    return outputs


def by_hand(path, split, column, over, domains=TRAINED):
    """[worst or mean over the domains, of every measurement of metrics.csv]."""
    rows = pd.read_csv(path / "metrics.csv")
    rows = rows[(rows["split"] == split) & rows["domain"].isin(domains)]
    return [over(values) for _, values in rows.groupby("iteration")[column]]


def test_every_aggregate_is_over_the_domains_that_train(runs, written, by_method):
    folder = written().out / "folder-without-sketch"
    rows = by_method(folder / "table.csv")
    for method in METHODS:
        paths = [run.path for run in collect(runs.root).runs if run.method == method]
        for name, split, column, over, domains in (
            ("worst_train_loss", "train", "loss", max, TRAINED),
            ("worst_train_accuracy", "train", "accuracy", min, TRAINED),
            ("worst_test_accuracy", "test", "accuracy", min, TRAINED),
            ("mean_test_accuracy", "test", "accuracy", statistics.fmean, TRAINED),
            ("unseen_sketch_test_accuracy", "test", "accuracy", min, ["sketch"]),
        ):
            # the last two of the three are in the last 40 % of the run
            curves = [by_hand(p, split, column, over, domains)[-2:] for p in paths]
            values = list(map(statistics.fmean, curves))
            assert float(rows[method][f"{name}_mean"]) == pytest.approx(statistics.fmean(values))
            assert float(rows[method][f"{name}_std"]) == pytest.approx(statistics.stdev(values))
    differences = by_method(folder / "paired.csv")
    assert differences["opt"]["quantity"] == "test accuracy on photo, even's best domain"


def test_tables_and_pages_name_the_unseen(runs, written):
    result = written()
    folder = result.out / "folder-without-sketch"
    for path in (folder / "table.md", folder / "table.tex", result.html, result.page):
        text = path.read_text("utf-8")
        assert "sketch (unseen)" in text, path
        assert "orst trained" in text, path


def test_its_figure_has_the_unseen_apart_and_curves_are_of_the_others(runs, study_of):
    study = study_of()
    assert {weights.shape for weights in study.weights.values()} == {(1, 2)}
    drawn = figures.unseen_test_accuracy(study)
    trained, apart = drawn.figure.axes
    assert apart.get_title() == "sketch (unseen)"
    for axes, domains in ((trained, TRAINED), (apart, ["sketch"])):
        paths = [runs.root / run for run in study.runs["run"][study.runs["row"] == "even"]]
        curves = [by_hand(path, "test", "accuracy", min, domains) for path in paths]
        means = [statistics.fmean(values) for values in zip(*curves, strict=True)]
        assert list(axes.lines[0].get_ydata()) == pytest.approx(means)


@pytest.mark.parametrize("altered", ["0.0", "99.0", "nan"])
def test_best_val_does_not_see_an_unseen_domain(runs, altered):
    """Chosen: the second of three measurements, whatever the validation rows of sketch say."""

    def chosen():
        (study,), _ = studies(read_records(runs.root), Rule("best-val"), "std")
        quantities = ["worst_train_loss", "worst_test_accuracy", "mean_test_accuracy"]
        return runs_csv(study)[["iterations", *quantities]].to_numpy().tolist()

    before = chosen()
    assert len(before) == 4
    assert {iterations for iterations, *_ in before} == {"66"}
    for path in runs.root.rglob("metrics.csv"):
        lines = path.read_text("utf-8").splitlines()
        for i, line in enumerate(lines):
            fields = line.split(",")
            if fields[2:4] == ["val", "sketch"] and (fields[0] != "100" or altered != "nan"):
                lines[i] = ",".join([*fields[:4], altered, *fields[5:]])
        path.write_text("\n".join(lines) + "\n", "utf-8")
    assert chosen() == before


def test_a_run_from_before_the_summary_named_the_unseen(runs):
    """Its summary's worst is over all domains; its config says which were unseen."""
    for path in runs.root.rglob("summary.json"):
        summary = json.loads(path.read_text("utf-8"))
        del summary["trained"], summary["unseen"]
        for split, by_domain in summary["final"].items():
            losses = [values["loss"] for values in by_domain.values()]
            accuracies = [values["accuracy"] for values in by_domain.values()]
            summary["worst"][split] = {"loss": max(losses), "accuracy": min(accuracies)}
        path.write_text(json.dumps(summary), "utf-8")
    found = collect(runs.root)
    assert not found.problems
    for run in found.runs:
        assert (run.domains, run.unseen) == (TRAINED, ("sketch",))
        assert run.worst("loss", "train") == by_hand(run.path, "train", "loss", max)[-1]
    for listed in list_runs(runs.root):
        assert listed.worst_loss == by_hand(listed.path, "train", "loss", max)[-1]


@pytest.mark.parametrize("named", [5, "sketch", [7], ["moon"], list(DOMAINS)])
def test_unseen_domains_that_cannot_be_leave_the_run_out(runs, named):
    path = next(runs.root.rglob("summary.json"))
    summary = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(summary | {"unseen": named}), "utf-8")
    found = collect(runs.root)
    assert len(found.runs) == 3
    (problem,) = found.problems
    assert "unseen" in problem.reason


def test_other_domains_kept_out_are_another_table(runs):
    runs.run("even", 0, data="folder", folder="1", train=dict.fromkeys(DOMAINS, (0.5, 80.0)))
    found, _ = studies(read_records(runs.root), Rule(), "std")
    assert [(s.domains, s.unseen, s.folder) for s in found] == [
        ([*DOMAINS], [], "folder"),
        ([*TRAINED], ["sketch"], "folder-without-sketch"),
    ]
    assert found[1].data == "folder (unseen: sketch)"


def leave_out(outputs, accuracies, domains=DOMAINS, **changes):
    """A run for each {(method, seed, kept out): test accuracy on what was kept out}."""
    for place, ((method, seed, kept), accuracy) in enumerate(accuracies.items()):
        test = {name: (0.5, accuracy if name == kept else 90.0) for name in domains}
        train = dict.fromkeys(domains, (0.4, 95.0))
        kept_out = {"unseen": [kept], "folder": f"{place:08x}", "train": train, "test": test}
        outputs.run(method, seed, data="folder", **kept_out, **changes)


def test_leave_one_domain_out_over_the_seeds_that_have_all(outputs, written, by_method):
    """Worked by hand: opt's seed 2 lacks domains, oracle lacks some in every seed."""
    domains = (*DOMAINS, "cartoon")
    accuracies = {}
    for k, kept in enumerate(domains):
        for seed in (0, 1):
            accuracies["even", seed, kept] = 50.0 + 10 * k + 4 * seed
            accuracies["opt", seed, kept] = 61.0 + k
    accuracies |= {("opt", 2, "art"): 10.0, ("oracle", 0, "art"): 9.0, ("oracle", 1, "photo"): 9.0}
    leave_out(outputs, accuracies, domains)
    result = written()
    folder = result.out / "folder-leave-one-out"
    rows = by_method(folder / "table.csv")
    assert list(rows) == ["even", "opt"]
    means = [float(rows["even"][f"unseen_{n}_test_accuracy_mean"]) for n in (*domains, "mean")]
    assert means == [52.0, 62.0, 72.0, 82.0, 67.0]
    assert float(rows["even"]["unseen_mean_test_accuracy_std"]) == pytest.approx(8**0.5)
    assert rows["opt"]["seeds"] == "0 1"
    assert float(rows["opt"]["unseen_art_test_accuracy_mean"]) == 61.0
    line = " | ".join(f"{mean} ± 2.83" for mean in ("52.00", "62.00", "72.00", "82.00", "67.00"))
    assert f"| even | {line} | 2 | 1 |" in (folder / "table.md").read_text("utf-8")
    tex = (folder / "table.tex").read_text()
    assert "even & 52.00 $\\pm$ " in tex
    for page in (result.page, result.html):
        assert "leave one domain out" in page.read_text("utf-8")


@pytest.mark.parametrize(("lam", "expected"), [(2.0, []), (1.0, ["opt"])])
def test_settings_that_differ_are_rows_of_their_own_and_need_every_domain(outputs, lam, expected):
    leave_out(outputs, {("opt", 0, kept): 60.0 for kept in DOMAINS[:2]}, settings={"lam": 1.0})
    train = dict.fromkeys(DOMAINS, (0.4, 95.0))
    other = {"settings": {"lam": lam}, "unseen": ["sketch"], "train": train}
    outputs.run("opt", data="folder", folder="9", **other)
    found, _ = studies(read_records(outputs.root), Rule(), "std")
    tables = [table for *_, table in leave_one_out(found)]
    assert [row for table in tables for row in table.raw["method"]] == expected
