"""Which runs belong together, in which order rows stand, and how they are told apart."""

import pytest

from robustmd.report.numbers import Rule, studies
from robustmd.runs.records import read_records


@pytest.fixture
def labels(study_of):
    return lambda: [*study_of().rows.index]


def test_rows_stand_in_the_papers_order(outputs, labels):
    for method in ("zeta", "opt", "alpha", "ot", "oracle", "even"):
        outputs.run(method)
    for i, domain in enumerate(("b", "a")):
        outputs.run("individual", settings={"domain": domain}, folder=str(i))
    known = ["individual a", "individual b", "even", "oracle", "opt", "ot"]
    assert labels() == [*known, "alpha", "zeta"]


def rate(value):
    return {"training": {"learning_rate": value}}


def method(**settings):
    return {"settings": settings, "data": "digits"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([method(lam=x) for x in (10, 0.5, 1.0)], ["opt λ=0.5", "opt λ=1", "opt λ=10"]),
        ([rate(0.01), rate(0.02)], ["opt learning_rate=0.01", "opt learning_rate=0.02"]),
        (
            [{"fingerprint": letter * 64} for letter in "ab"],
            ["opt data fingerprint=aaaaaaaa", "opt data fingerprint=bbbbbbbb"],
        ),
        ([method(lam=1, c=0), method(lam=1.0, c=0.0)], ["opt"]),
        ([method(lam=1.0), method(lam=1.0, step="theory", prior=None)], ["opt"]),  # as recorded
    ],
)
def test_rows_are_told_apart_by_what_changes_a_number(outputs, labels, changes, expected):
    for seed, one in enumerate(changes):
        outputs.run("opt", seed, folder=str(seed), **one)
    assert labels() == expected


def test_a_name_holds_three_settings_and_a_number(outputs, labels):
    for seed, lam in enumerate((1.0, 2.0, 2.0)):
        training = {"learning_rate": 0.1, "momentum": 0.8 if seed < 2 else 0.7, "clip_norm": lam}
        outputs.run("opt", seed, folder=str(seed), settings={"lam": lam}, training=training)
    outputs.run("even", training={"learning_rate": 0.2})
    named = "learning_rate=0.1 momentum"
    assert labels() == [
        "even learning_rate=0.2 momentum=0.9 clip_norm=null",
        f"opt λ=1 {named}=0.8 … (1)",
        f"opt λ=2 {named}=0.7 … (2)",
        f"opt λ=2 {named}=0.8 … (3)",
    ]


def test_what_changes_no_number_changes_no_row(outputs, labels):
    outputs.run("even", 0)
    path = outputs.run("even", 1, folder="1") / "config.yaml"
    text = path.read_text("utf-8").replace("device: cpu", "device: cuda\n  threads: 4")
    path.write_text(text.replace("predictions: true", "predictions: false"), "utf-8")
    assert labels() == ["even"]


def test_a_run_that_is_there_twice_counts_once(outputs):
    first = outputs.run("even", 0, folder="1")
    second = outputs.run("even", 0, folder="2")
    (study,), left_out = studies(read_records(outputs.root), Rule(), "std")
    assert [outputs.root / run for run in study.runs["run"]] == [first]
    (twice,) = left_out.itertuples()
    assert outputs.root / twice.run == second
    assert twice.reason == "same configuration and seed as toy/even/1/seed=0"


def test_other_domains_are_another_table_and_folders_stay_in_the_report(outputs):
    outputs.run("even", data="../x", folder="1")
    outputs.run("even", data="../x", folder="2", train={"c": (0.1, 90.0)})
    outputs.run("even", data="..", folder="3", train={"c": (0.1, 90.0)})
    found, _ = studies(read_records(outputs.root), Rule(), "std")
    assert [study.domains for study in found] == [["c"], ["a", "b"], ["c"]]
    assert [study.folder for study in found] == ["data", "_x", "_x-2"]


def test_configurations_of_a_method_are_counted_unfinished_ones_too(outputs, study_of):
    outputs.run("even")
    for seed, lam in ((0, 0.1), (1, 0.1), (0, 1.0)):
        outputs.run("opt", seed, settings={"lam": lam}, folder=str(lam))
    outputs.run("opt", settings={"lam": 9.0}, folder="9", extra={"status": "diverged"})
    counts = study_of().rows["configurations"]
    assert [*counts.items()] == [("even", 1), ("opt λ=0.1", 3), ("opt λ=1", 3)]


def test_a_domain_called_worst_shares_no_column_with_the_worst_domain(outputs, written, csv_rows):
    test = {"worst": (0.5, 90.0), "mean": (0.5, 70.0), "worst (domain)": (0.5, 80.0)}
    path = outputs.run("even", train=test, test=test)
    measure = "iteration,split,domain,metric,value\n100,test,mean,examples,3\n"
    (path / "measures.csv").write_text(measure)
    (row,) = csv_rows(written().out / "toy" / "table.csv")
    found = [float(row[f"{name}_test_accuracy_mean"]) for name in ("worst", "mean")]
    assert found == [70.0, 80.0]
    named = [float(row[f"{name} (domain)_test_accuracy_mean"]) for name in ("worst", "mean")]
    assert named == [90.0, 70.0]
