"""What stands beside a row though no run says it: lost seeds, and one class for everything."""

import numpy as np

from robustmd.report.aggregate import sections
from robustmd.report.troubles import troubles
from robustmd.runs.reader import collect


def lines_of(outputs):
    found = collect(outputs.root)
    (section,), _ = sections(found.runs, problems=found.problems)
    return [troubles(group) for group in section.groups]


def predictions(path, **logits):
    arrays = {f"test/{domain}/logits": np.array(rows) for domain, rows in logits.items()}
    np.savez(path / "predictions.npz", **arrays)


def test_a_diverged_seed_is_said_beside_its_row(outputs):
    outputs.run("opt", 0)
    diverged = {"status": "diverged", "message": "loss is nan", "iterations_done": 12}
    outputs.run("opt", 3, extra=diverged)
    assert lines_of(outputs) == [
        ("seed 3 is not in it: diverged after 12 of 100 iterations: loss is nan",)
    ]


def test_one_class_for_every_image_is_found_in_the_predictions(outputs):
    same, mixed = np.float16([[0, 1], [2, 3]]), np.float16([[0, 1], [3, 2]])
    predictions(outputs.run("even", 0), a=same, b=mixed)
    predictions(outputs.run("even", 1), a=mixed, b=mixed)
    assert lines_of(outputs) == [("predicts one class for every test image of a (1 of 2 runs)",)]


def test_without_predictions_the_accuracy_of_guessing_tells(outputs):
    outputs.run("even", 0, test={"a": (0.7, 50.0), "b": (0.7, 50.1)})
    assert lines_of(outputs) == [("predicts one class for every test image of a (1 of 1 run)",)]


def test_bytes_that_are_no_predictions_are_nothing(outputs):
    for seed, content in enumerate((b"", b"PK\x03\x04 rubbish", b"\x93NUMPY")):
        (outputs.run("even", seed) / "predictions.npz").write_bytes(content)
    predictions(outputs.run("even", 3), a=np.array([1, 2]), b=np.array([["x"]]))
    assert lines_of(outputs) == [()]


def test_pickled_predictions_are_never_loaded(outputs):
    path = outputs.run("even", 0)
    np.savez(path / "predictions.npz", **{"test/a/logits": np.array([{"no": 1}], object)})
    assert lines_of(outputs) == [()]
