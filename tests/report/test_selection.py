"""Which measurements a number is of, under each rule; worked by hand."""

import pytest

from robustmd.errors import UserError
from robustmd.metrics import BestBy
from robustmd.report.numbers import Rule, studies
from robustmd.report.tables import runs_csv
from robustmd.report.write import write_report
from robustmd.runs.records import read_records


def measurement(a, b, val=None):
    """Both domains' accuracies a, b [percent]; losses are (100 − accuracy)/100."""
    splits = {"train": (a, b), "test": (a, b), **({} if val is None else {"val": val})}
    return {
        split: {"a": ((100 - x) / 100, x), "b": ((100 - y) / 100, y)}
        for split, (x, y) in splits.items()
    }


def run_of(outputs, *measurements):
    """One run with these measurements, the last after the last iteration."""
    *earlier, last = measurements
    return outputs.run(earlier=earlier, train=last["train"], test=last["test"], also=last)


def selected(outputs, name, by="worst_loss", row=0):
    """The line of runs.csv; None where the rule can say nothing of the run."""
    found, _ = studies(read_records(outputs.root), Rule(name, BestBy.of(by)), "std")
    return runs_csv(found[0]).iloc[row] if found else None


def test_final_is_the_last_measurement(outputs):
    run_of(outputs, measurement(10, 20), measurement(80, 90))
    one = selected(outputs, "final")
    assert one["iterations"] == "100"
    assert one["worst_test_accuracy"] == 80.0
    assert one["mean_test_accuracy"] == 85.0


def test_last40_is_the_mean_of_the_last_40_percent_and_the_worst_is_taken_in_each(outputs):
    # worst of each from 60 % of the run on: 60, 60, 70, 70, 80
    pairs = [(10, 10)] * 5 + [(60, 90), (90, 60), (70, 90), (90, 70), (80, 90)]
    run_of(outputs, *(measurement(a, b) for a, b in pairs))
    one = selected(outputs, "last40")
    assert one["iterations"] == "60 70 80 90 100"
    assert one["worst_test_accuracy"] == 68.0
    assert one["a_test_accuracy"] == 78.0  # the domains' own means are larger
    assert one["worst_train_loss"] == pytest.approx(0.32)


@pytest.mark.parametrize(("measured", "in_it"), [(1, 1), (2, 1), (4, 2), (5, 3), (20, 9)])
def test_the_window_is_the_same_part_of_a_run_however_often_it_was_measured(
    outputs, measured, in_it
):
    run_of(outputs, *[measurement(60, 70)] * measured)
    assert len(selected(outputs, "last40")["iterations"].split()) == in_it


def test_the_untrained_model_is_in_no_mean(outputs):
    outputs.run(curve=[{"a": 2.0, "b": 3.0}], train={"a": (0.5, 80.0), "b": (0.25, 90.0)})
    one = selected(outputs, "last40")
    assert one["worst_train_loss"] == 0.5


def test_a_measurement_that_lost_a_row_is_left_out_of_the_mean_and_not_replaced(outputs):
    path = run_of(outputs, *(measurement(a, 99) for a in (10, 60, 60, 61, 70, 80))) / "metrics.csv"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    lost = next(i for i, line in enumerate(lines) if ",test,b," in line and line.startswith("66,"))
    path.write_text("".join(lines[:lost] + lines[lost + 1 :]), "utf-8")
    one = selected(outputs, "last40")
    assert one["iterations"] == "83 100"
    assert one["worst_test_accuracy"] == (70 + 80) / 2


def test_best_val_looks_at_the_validation_split_alone_and_takes_the_earliest_of_equals(outputs):
    run_of(
        outputs,
        measurement(50, 50, val=(60, 90)),
        measurement(55, 65, val=(80, 81)),  # the best worst validation loss
        measurement(56, 66, val=(80, 99)),
        measurement(99, 99, val=(70, 99)),  # the best test: not looked at
    )
    one = selected(outputs, "best-val")
    assert one["iterations"] == "50"
    assert one["worst_test_accuracy"] == 55.0


@pytest.mark.parametrize(
    ("by", "iteration"), [("worst_loss", 33), ("mean_accuracy", 66), ("worst_tenth_ece", 100)]
)
def test_best_val_goes_by_any_metric_and_reducer(outputs, by, iteration):
    path = run_of(
        outputs,
        measurement(50, 50, val=(80, 81)),
        measurement(51, 51, val=(79, 99)),
        measurement(52, 52, val=(70, 99)),
    )
    rows = [f"{t},val,{d},ece,{e}\n" for t, e in ((33, 0.3), (66, 0.2), (100, 0.1)) for d in "ab"]
    (path / "measures.csv").write_text("iteration,split,domain,metric,value\n" + "".join(rows))
    assert selected(outputs, "best-val", by)["iterations"] == str(iteration)
    assert selected(outputs, "best-val", "mean_macro_f1") is None


def test_runs_without_a_validation_split_are_listed_as_left_out(outputs, tmp_path, written):
    run_of(outputs, measurement(60, 70, val=(70, 80)), measurement(61, 71, val=(60, 80)))
    outputs.run("opt", 0)
    result = written(rule=Rule("best-val"))
    assert [*result.sections[0].study.rows.index] == ["even"]
    (reason,) = result.left_out.shown["reason"]
    assert reason.startswith("--select best-val needs a validation split")
    assert "smallest worst-case validation loss" in result.sections[0].results.caption
    assert "toy/opt/00000000/seed=0" in result.page.read_text("utf-8")
    assert "Missing" not in result.sections[0].parts
    with pytest.raises(UserError, match=r"data\.validation=0\.1"):
        write_report(outputs.root / "toy" / "opt", tmp_path / "r", rule=Rule("best-val"))


def test_the_averaged_model_is_selected_by_its_own_measurements(outputs):
    early, late, last = (
        measurement(own, own + 10)
        | dict.fromkeys(("train_averaged", "test_averaged"), dict.fromkeys("ab", (0.5, averaged)))
        for own, averaged in ((10, 10), (60, 40), (61, 80))
    )
    run_of(outputs, early, late, last)
    last, averaged = (selected(outputs, "last40", row=row) for row in (0, 1))
    assert averaged["worst_test_accuracy"] == 60.0
    assert last["worst_test_accuracy"] == 60.5


def test_a_part_of_the_training_set_is_said_in_the_caption(outputs, written):
    run_of(outputs, *[measurement(60, 70)] * 2, measurement(61, 71))
    caption = written().sections[0].results.caption
    assert "a fixed random part of the training set (from 20 examples a domain)" in caption
    final = written(rule=Rule("final"))
    assert "random part" not in final.sections[0].results.caption
