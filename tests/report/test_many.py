"""Many domains: what is summarised, what is still there for each, and which one is the worst."""

import csv

import numpy as np
import pytest
from conftest import OutputsBuilder, summary_text

from robustmd.report.figures import draw_all
from robustmd.report.numbers import MOST_NAMED, Rule
from robustmd.report.render import to_markdown
from robustmd.report.tables import results, row_warnings
from robustmd.report.write import write_report

K = 40
NAMES = [f"rotate_{9 * k}_sigma_{4 * (k % 5)}" for k in range(K)]
HARDEST = (NAMES[7], NAMES[7], NAMES[30])  # by seed, under opt
FINAL = Rule("final")
COLUMNS = 13  # method, n, cfg; worst, worst tenth and mean, three each; the worst domain


def accuracies(method, seed):
    """1 to 40 %, one each; under opt 0.5 % on `HARDEST` and 10 points more elsewhere."""
    found = {name: 1.0 + k for k, name in enumerate(NAMES)}
    if method == "opt":
        found = {name: value + 10 for name, value in found.items()} | {HARDEST[seed]: 0.5}
    return found


def fill(builder, seeds=3):
    for method in ("even", "opt"):
        for seed in range(seeds):
            train = {n: (2 - a / 50, a + 20) for n, a in accuracies(method, seed).items()}
            test = {n: (4 - a / 25, a) for n, a in accuracies(method, seed).items()}
            extra = {"domains_per_batch": 4, "licences": "CC BY 4.0"}
            settings = {"lam": 0.1} if method == "opt" else {}
            curve = [{n: 3 - 0.01 * k for k, n in enumerate(NAMES)}] * 2
            path = builder.run(
                method, seed, train=train, test=test, extra=extra, settings=settings, curve=curve
            )
            write_weights(path, moves=method == "opt")


def write_weights(path, *, moves, empty="nan"):
    """Four of forty are drawn in an iteration: of the rest there is no batch loss."""
    lines = ["iteration,domain,weight,batch_loss"]
    for t in (10, 20, 30):
        tilt = np.arange(1, K + 1) ** (t / 20 if moves else 0.0)
        p = tilt / tilt.sum()
        lines += [
            f"{t},{name},{p[k]},{0.5 if k % 10 == 0 else empty}" for k, name in enumerate(NAMES)
        ]
    (path / "weights.csv").write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report on forty domains, without its figures."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "outputs").mkdir()
    fill(OutputsBuilder(folder / "outputs"))
    return write_report(folder / "outputs", folder / "report", rule=FINAL, draw=False)


def text_of(made, name):
    return (made.out / "toy" / name).read_text("utf-8")


def rows(made, name):
    return list(csv.DictReader(text_of(made, name).splitlines()))


def table_head(markdown):
    return next(line for line in markdown.splitlines() if line.startswith("| method"))


@pytest.mark.parametrize(("count", "columns"), [(MOST_NAMED, 3 * MOST_NAMED + 7), (9, COLUMNS)])
def test_nine_domains_are_many_and_eight_are_not(outputs, study_of, count, columns):
    outputs.run(train={f"d{k}": (0.1, 90.0) for k in range(count)})
    assert table_head(to_markdown(results(study_of()))).count("|") - 1 == columns


def test_tables_have_no_column_for_each_domain(made):
    head = table_head(text_of(made, "table.md"))
    assert head.count("|") - 1 == COLUMNS
    assert "worst tenth test acc." in head
    lines = text_of(made, "table.tex").splitlines()
    assert {line.count("&") for line in lines if line.startswith(("even", "method"))} == {12}


def test_no_page_names_every_domain(made):
    page = (made.out / "index.html").read_text("utf-8")
    named = (page, (made.out / "README.md").read_text("utf-8"))
    for text in named:
        assert "40 domains, rotate_0_sigma_0 to rotate_351_sigma_16" in text
    assert not any(NAMES[20] in text for text in (*named, summary_text(made)))
    assert "toy/domains.csv" in page


def test_every_domains_numbers_are_in_the_csv_files(made):
    by_name = {row["domain"]: row for row in rows(made, "domains.csv") if row["method"] == "opt"}
    assert list(by_name) == NAMES
    (wide,) = (row for row in rows(made, "table.csv") if row["method"] == "opt")
    runs = [row for row in rows(made, "runs.csv") if row["method"] == "opt"]
    for name in NAMES:
        wanted = np.mean([accuracies("opt", seed)[name] for seed in range(3)])
        key = f"{name}_test_accuracy"
        assert float(by_name[name]["test_accuracy_mean"]) == pytest.approx(wanted)
        assert float(wide[f"{key}_mean"]) == pytest.approx(wanted)
        assert np.mean([float(run[key]) for run in runs]) == pytest.approx(wanted)
        assert float(by_name[name]["train_loss_std"]) >= 0
        assert float(by_name[name]["weight_mean"]) == pytest.approx(1 / K)


def test_the_worst_domain_is_named_with_how_many_runs_it_is_the_worst_in(made):
    shown = made.sections[0].results.shown["worst domain"]
    assert [*shown] == [f"{NAMES[0]} (3 of 3)", f"{NAMES[7]} (2 of 3)"]
    assert f"{NAMES[7]} (2 of 3)" in text_of(made, "table.md")
    assert r"rotate\_63\_sigma\_8 (2 of 3) &" in text_of(made, "table.tex")
    assert f"{NAMES[7]} (2 of 3)" in (made.out / "index.html").read_text("utf-8")
    named = [row["worst_domain"] for row in rows(made, "runs.csv") if row["method"] == "opt"]
    assert tuple(named) == HARDEST
    (wide,) = (row for row in rows(made, "table.csv") if row["method"] == "opt")
    assert (wide["worst_domain"], wide["worst_in"]) == (NAMES[7], "2")
    counts = {row["domain"]: row["worst_in"] for row in rows(made, "domains.csv")}
    assert (counts[NAMES[7]], counts[NAMES[30]], counts[NAMES[1]]) == ("2", "1", "0")


def test_worst_tenth_and_mean_of_forty(made):
    (wide,) = (row for row in rows(made, "table.csv") if row["method"] == "even")
    assert float(wide["worst_test_accuracy_mean"]) == 1.0
    assert float(wide["worst_tenth_test_accuracy_mean"]) == 2.5  # 1, 2, 3, 4
    assert float(wide["mean_test_accuracy_mean"]) == 20.5
    assert float(wide["worst_tenth_train_loss_mean"]) == pytest.approx(2 - 2.5 / 50)


def test_the_price_is_the_mean_over_the_domains(made):
    found = made.sections[0].study.comparisons
    (price,) = found[found["price"]].itertuples()
    assert price.quantity == "mean test accuracy"
    means = [np.mean(list(accuracies("opt", seed).values())) - 20.5 for seed in range(3)]
    assert price.difference == pytest.approx(np.mean(means))
    page = (made.out / "index.html").read_text("utf-8")
    assert "mean test accuracy" in page
    assert "best domain" not in page


@pytest.fixture(scope="module")
def drawn(made):
    return {one.name: one for one in draw_all(made.sections[0].study)}


def test_figures_of_many_domains(drawn):
    assert {"weights", "discrepancy", "worst_case_training_loss"} <= set(drawn)
    assert "drift" not in drawn
    for one in drawn.values():
        assert max(len(axis.lines) for axis in one.figure.axes) <= 4, one.name
        assert NAMES[20] not in one.caption + one.alt


def test_batch_losses_of_domains_that_were_not_drawn_spoil_nothing(made, drawn):
    even, opt = drawn["weights"].figure.axes[0].lines
    np.testing.assert_allclose(even.get_ydata(), 1.0)
    np.testing.assert_allclose(opt.get_ydata().sum(), K)
    assert np.diff(opt.get_ydata()).max() < 0
    contents = [path.read_text("utf-8") for path in made.files if path.suffix in (".csv", ".md")]
    assert not any("nan" in text.lower() for text in contents)


@pytest.mark.parametrize("empty", ["", "nan"])
def test_a_batch_loss_that_is_not_there_leaves_the_weights(outputs, study_of, empty):
    path = outputs.run(train=dict.fromkeys(NAMES, (0.5, 90.0)))
    write_weights(path, moves=True, empty=empty)
    (weights,) = study_of().weights.values()
    assert weights.shape == (3, K)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_constant_models_are_one_warning(outputs, study_of):
    outputs.run(train=dict.fromkeys(NAMES, (1.0, 50.0)), constant=NAMES)
    assert row_warnings(study_of(), "even") == [
        "predicts one class for every test image of rotate_0_sigma_0 (1 of 1 run), "
        f"rotate_9_sigma_4 (1 of 1 run), rotate_18_sigma_8 (1 of 1 run) and {K - 3} more",
    ]
