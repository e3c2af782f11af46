"""Which runs belong together, in which order rows stand, and how they are told apart."""

from robustmd.report.aggregate import sections
from robustmd.runs.reader import collect


def labels(outputs):
    (section,), _ = sections(collect(outputs.root).runs)
    return [group.label for group in section.groups]


def test_rows_stand_in_the_papers_order(outputs):
    for method in ("zeta", "opt", "alpha", "ot", "oracle", "even"):
        outputs.run(method)
    for i, domain in enumerate(("b", "a")):
        outputs.run("individual", settings={"domain": domain}, folder=str(i))
    known = ["individual a", "individual b", "even", "oracle", "opt", "ot"]
    assert labels(outputs) == [*known, "alpha", "zeta"]


def test_settings_that_differ_within_a_method_are_in_its_label_by_size(outputs):
    outputs.run("even")
    for i, lam in enumerate((10, 0.5, 1.0)):
        outputs.run("opt", settings={"lam": lam, "c": "auto"}, folder=str(i))
    assert labels(outputs) == ["even", "opt λ=0.5", "opt λ=1", "opt λ=10"]


def test_training_that_differs_is_in_every_label(outputs):
    outputs.run("even", training={"learning_rate": 0.01})
    outputs.run("opt", training={"learning_rate": 0.02})
    assert labels(outputs) == ["even learning_rate=0.01", "opt learning_rate=0.02"]


def test_other_bytes_of_the_data_are_another_row(outputs):
    outputs.run("even", 0, fingerprint="a" * 64)
    outputs.run("even", 1, fingerprint="b" * 64, folder="1")
    expected = ["even data fingerprint=aaaaaaaa", "even data fingerprint=bbbbbbbb"]
    assert labels(outputs) == expected


def test_equal_numbers_are_equal_settings(outputs):
    outputs.run("opt", 0, settings={"lam": 1, "c": 0})
    outputs.run("opt", 1, settings={"lam": 1.0, "c": 0.0}, folder="1")
    assert labels(outputs) == ["opt"]


def test_what_changes_no_number_changes_no_row(outputs):
    outputs.run("even", 0)
    path = outputs.run("even", 1, folder="1") / "config.yaml"
    text = path.read_text("utf-8").replace("device: cpu", "device: cuda\n  threads: 4")
    path.write_text(text.replace("predictions: true", "predictions: false"), "utf-8")
    assert labels(outputs) == ["even"]


def test_a_run_that_is_there_twice_counts_once(outputs):
    first = outputs.run("even", 0, folder="1")
    second = outputs.run("even", 0, folder="2")
    (section,), (twice,) = sections(collect(outputs.root).runs)
    assert [run.path for run in section.runs] == [first.resolve()]
    assert twice.path == second.resolve()
    assert twice.reason == "same configuration and seed as toy/even/1/seed=0"


def test_other_domains_are_another_table_and_folders_stay_in_the_report(outputs):
    outputs.run("even", data="../x", folder="1")
    outputs.run("even", data="../x", folder="2", train={"c": (0.1, 90.0)})
    outputs.run("even", data="..", folder="3", train={"c": (0.1, 90.0)})
    found, _ = sections(collect(outputs.root).runs)
    assert [section.domains for section in found] == [("c",), ("a", "b"), ("c",)]
    assert [section.folder for section in found] == ["data", "_x", "_x-2"]


def test_configurations_of_a_method_are_counted_unfinished_ones_too(outputs):
    outputs.run("even")
    outputs.run("opt", settings={"lam": 0.1}, folder="1")
    outputs.run("opt", 1, settings={"lam": 0.1}, folder="1")
    outputs.run("opt", settings={"lam": 1.0}, folder="2")
    outputs.run("opt", settings={"lam": 9.0}, folder="3", extra={"status": "diverged"})
    found = collect(outputs.root)
    (section,), _ = sections(found.runs, problems=found.problems)
    counts = [(group.label, group.configurations) for group in section.groups]
    assert counts == [("even", 1), ("opt λ=0.1", 3), ("opt λ=1", 3)]


def test_a_key_younger_than_a_run_has_its_recorded_default(outputs):
    outputs.run("opt", 0, data="digits", settings={"lam": 1.0})
    younger = {"lam": 1.0, "step": "theory", "prior": None}
    outputs.run("opt", 1, data="digits", settings=younger, folder="1")
    assert labels(outputs) == ["opt"]
