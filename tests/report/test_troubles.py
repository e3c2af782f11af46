"""What stands beside a row though no run says it: lost seeds, and one class for everything."""

import json

import pytest

from robustmd.report.aggregate import sections
from robustmd.report.messages import other_warnings
from robustmd.runs.reader import collect


def lines_of(outputs):
    found = collect(outputs.root)
    (section,), _ = sections(found.runs, problems=found.problems)
    return [other_warnings(group) for group in section.groups]


def test_a_diverged_seed_is_said_beside_its_row(outputs):
    outputs.run("opt", 0)
    diverged = {"status": "diverged", "message": "loss is nan", "iterations_done": 12}
    outputs.run("opt", 3, extra=diverged)
    assert lines_of(outputs) == [
        ("seed 3 is not in it: diverged after 12 of 100 iterations: loss is nan",)
    ]


def test_constant_predictions_of_several_domains_and_seeds_are_one_line(outputs):
    outputs.run("even", 0, constant=["a", "b"])
    outputs.run("even", 1, constant=["a"])
    outputs.run("even", 2)
    assert lines_of(outputs) == [
        ("predicts one class for every test image of a (2 of 3 runs), b (1 of 3 runs)",)
    ]


@pytest.mark.parametrize("wrong", [None, 5, [True], "yes", {"constant": True}])
def test_only_a_true_is_taken_for_a_constant_prediction(outputs, wrong):
    path = outputs.run("even", 0)
    summary = json.loads((path / "summary.json").read_text("utf-8"))
    summary["final"]["test"]["a"]["constant"] = wrong
    summary["final"]["val"] = wrong
    (path / "summary.json").write_text(json.dumps(summary), "utf-8")
    assert lines_of(outputs) == [()]
