"""The fair protocol: what is chosen, by what, out of what; and what the budget says."""

import pytest

from robustmd.report.fair import budget, fair
from robustmd.report.render import to_markdown
from robustmd.report.tables import row_warnings


def add(outputs, method, seed, lr, val, test, *, settings=None, status=None, validation=0.2):
    """A run with the worst validation loss `val` and the worst test accuracy `test`."""
    extra = {"seconds": {"training": 2.0, "total": 3.0}}
    if status:
        extra |= {"status": status, "message": status}
    path = outputs.run(
        method,
        seed,
        test={"a": (0.5, test), "b": (0.1, 95.0)},
        also={} if val is None else {"val": {"a": (val, 60.0), "b": (0.01, 60.0)}},
        settings=settings,
        training={"learning_rate": lr},
        folder=f"lr{lr}",
        extra=extra,
    )
    change(path, "validation: 0.0", f"validation: {validation}")
    return path


def change(path, old, new):
    config = path / "config.yaml"
    config.write_text(config.read_text("utf-8").replace(old, new), "utf-8")


def fill(outputs):
    """Two methods, two learning rates, three seeds. By validation: even takes 0.1 on seed 0 and
    0.2 on the others; opt 0.2 always. By test it would be the other way round."""
    for seed in range(3):
        add(outputs, "even", seed, 0.1, 0.3 if seed == 0 else 0.5, 60.0 + seed)
        add(outputs, "even", seed, 0.2, 0.4, 70.0 + seed)
        add(outputs, "opt", seed, 0.1, 0.9, 99.0, settings={"lam": 1.0})
        add(outputs, "opt", seed, 0.2, 0.8, 80.0 + seed, settings={"lam": 0.1})


@pytest.fixture
def fair_of(study_of):
    return lambda: fair(study_of())


def tries(found, label):
    """All runs of a method, and those that its seeds chose, by seed."""
    own = found.tries[found.tries["label"] == label]
    return own, own[own["chosen"]].sort_values("seed")


def test_each_seed_takes_the_smallest_worst_validation_loss_and_tests_choose_nothing(
    outputs, fair_of
):
    fill(outputs)
    found = fair_of()
    (_, even), (_, opt) = tries(found, "even"), tries(found, "opt")
    assert [*even["said"]] == ["learning_rate=0.1", "learning_rate=0.2", "learning_rate=0.2"]
    assert {*opt["said"]} == {"learning_rate=0.2 λ=0.1"}
    means = found.results.raw.set_index("method")["worst_test_accuracy_mean"].to_dict()
    assert means == {"even": pytest.approx((60 + 71 + 72) / 3), "opt": pytest.approx(81.0)}


def test_differences_are_paired_under_the_same_protocol(outputs, fair_of):
    fill(outputs)
    one = fair_of().paired.raw.set_index("quantity").loc["worst test accuracy"]
    assert [*one[["method", "reference", "seeds"]]] == ["opt", "even", "0 1 2"]
    assert one["difference"] == pytest.approx((20 + 10 + 10) / 3)


def test_the_budget_counts_configurations_runs_and_seconds(outputs, fair_of):
    fill(outputs)
    add(outputs, "individual", 0, 0.1, 0.9, 50.0, settings={"domain": "a"})
    found = fair_of()
    assert {*found.results.raw["method"]} == {"even", "opt"}
    assert [*budget(found).shown["method"]] == ["even", "opt", "individual a"]
    text = to_markdown(budget(found))
    assert "| even | 2 | 6 | 0 | 18 | learning_rate=0.1 (seed 0); learning_rate=0.2" in text


def test_rows_that_another_beats_in_worst_and_mean_are_named(outputs, fair_of):
    fill(outputs)
    for seed in range(3):
        add(outputs, "kl", seed, 0.1, 0.9, 75.0 + 10 * (seed == 2), settings={"lam": 1.0})
    shown = fair_of().tables[-1].shown
    said = {
        method.removesuffix(" †"): (row[0].partition(" ")[0], row[-1])
        for method, *row in shown.itertuples(index=False)
    }
    assert said == {
        "even": ("67.67", "opt, kl"),
        "opt": ("81.00", "none: on the front"),
        "kl": ("78.33", "opt"),
    }


def test_a_run_that_diverged_was_tried_and_one_that_was_cut_off_was_not(outputs, fair_of):
    fill(outputs)
    for seed, status in ((3, "diverged"), (4, "interrupted")):
        add(outputs, "opt", seed, 0.1, None, 10.0, settings={"lam": 1.0}, status=status)
        add(outputs, "opt", seed, 0.2, 0.8, 80.0, settings={"lam": 0.1})
    found = fair_of()
    every, chosen = tries(found, "opt")
    assert [*chosen["seed"]] == [0, 1, 2, 3]
    assert (len(every), (~every["has_numbers"]).sum()) == (10, 2)
    (said,) = found.left_out["opt"]
    assert said.startswith("seed 4 is not in it: 1 of 2 configurations")


def test_the_csv_file_has_every_run_and_no_values_of_one_that_diverged(outputs, written, csv_rows):
    fill(outputs)
    add(outputs, "opt", 3, 0.1, None, 10.0, settings={"lam": 1.0}, status="diverged")
    add(outputs, "opt", 3, 0.2, 0.8, 80.0, settings={"lam": 0.1})
    (path,) = (path for path in written().files if path.name == "fair_runs.csv")
    rows = csv_rows(path)
    assert (len(rows), len({row["path"] for row in rows})) == (14, 14)
    (lost,) = (row for row in rows if row["status"] == "diverged")
    assert (lost["chosen"], lost["worst_val_loss"], lost["worst_test_accuracy"]) == ("no", "", "")
    for seed in range(4):
        of_opt = [row for row in rows if (row["method"], row["seed"]) == ("opt", str(seed))]
        (chosen,) = (row for row in of_opt if row["chosen"] == "yes")
        assert float(chosen["worst_val_loss"]) == 0.8


def test_a_smaller_budget_is_said_beside_the_row(outputs, fair_of):
    fill(outputs)
    for seed in range(3):
        add(outputs, "topk", seed, 0.1, 0.4, 75.0, settings={"k": 1})
    study = fair_of().study
    assert row_warnings(study, "topk") == ["1 configurations, while another method has 2"]
    assert row_warnings(study, "even") == []


def test_fixed_weights_are_no_configurations_of_even(outputs, fair_of):
    fill(outputs)
    add(outputs, "even", 0, 0.3, 0.01, 99.0, settings={"prior": [0.5, 0.5]})
    cfg = budget(fair_of()).shown.set_index("method")["cfg"]
    assert (cfg["even"], cfg["even prior=[0.5, 0.5]"]) == ("2", "1")


def test_a_reference_taken_from_runs_makes_no_configuration(outputs, fair_of):
    fill(outputs)
    for seed in range(2):
        for lr in (0.1, 0.2):
            reference = {"lam": 1.0, "reference": [0.1, 0.2 + seed]}
            add(outputs, "regret", seed, lr, lr, 75.0, settings=reference)
    every, chosen = tries(fair_of(), "regret")
    assert (every["configuration"].nunique(), len(chosen)) == (2, 2)


@pytest.mark.parametrize(("methods", "validation"), [(("even", "opt"), 0.0), (("opt",), 0.2)])
def test_without_a_validation_split_or_with_one_method_it_is_no_protocol(
    outputs, fair_of, methods, validation
):
    for method in methods:
        for lr in (0.1, 0.2):
            add(outputs, method, 0, lr, 0.5 if validation else None, 70.0, validation=validation)
    add(outputs, "topk", 0, 0.1, 0.5, 70.0)
    assert fair_of() is None


def test_runs_on_other_ground_are_counted_and_left_out(outputs, fair_of):
    fill(outputs)
    path = add(outputs, "even", 7, 0.7, 0.1, 99.0)
    change(path, "iterations: 100", "iterations: 99999")
    found = fair_of()
    assert found.others == 1
    assert tries(found, "even")[0]["configuration"].nunique() == 2


def test_it_is_on_the_pages_and_in_the_folder(outputs, written, csv_rows):
    fill(outputs)
    result = written()
    files = {path.name: path for path in result.files}
    assert files.keys() > {"fair.md", "fair.tex", "fair.csv", "fair_runs.csv", "fair_paired.csv"}
    budget = r"even & 2 & 6 & 0 & 18 & learning\_rate=0.1 (seed 0); learning"
    assert budget in files["fair.tex"].read_text("utf-8")
    first, *others = csv_rows(files["fair_runs.csv"])
    assert (first["path"], first["chosen"]) == ("toy/even/lr0.1/seed=0", "yes")
    assert (first["configuration"], float(first["worst_val_loss"])) == ("learning_rate=0.1", 0.3)
    assert (len(others), [row["chosen"] for row in others].count("yes")) == (11, 5)
    assert "### The fair protocol" in result.page.read_text("utf-8")
    html = result.html.read_text("utf-8")
    assert "<h3>The fair protocol</h3>" in html
    assert "learning_rate=0.1 (seed 0); learning_rate=0.2 (seeds 1, 2)" in html
