"""The regret table: what a run must have recorded to be in it, and when a bound holds."""

import math

import pytest

from robustmd.report.tables import ROUNDING, regret

GOOD = {"measured": 0.1, "bound": 0.2, "mu": 1.5, "updates": 100}


@pytest.fixture
def line_of(outputs, study_of, csv_rows):
    """The only line of regret.csv, of runs with these regrets."""

    def made(*recorded):
        for seed, one in enumerate(recorded):
            outputs.run("opt", seed, extra={} if one is None else {"regret": one})
        (line,) = csv_rows(regret(study_of()).raw)
        return line

    return made


def test_mean_and_spread_over_the_runs_that_recorded_one(line_of):
    line = line_of(GOOD, {**GOOD, "measured": 0.2, "bound": 0.4, "mu": 3.0}, None)
    assert float(line["measured_mean"]) == pytest.approx(0.15)
    assert float(line["measured_std"]) == pytest.approx(0.1 / math.sqrt(2))
    assert float(line["bound_mean"]) == pytest.approx(0.3)
    assert (line["n"], line["seeds"], line["mu_max"]) == ("2", "0 1", "3.0")
    assert (line["holds"], line["broken_seeds"]) == ("yes", "")


@pytest.mark.parametrize(
    ("measured", "bound", "holds"),
    [
        (0.2, 0.2, "yes"),
        (0.2 + ROUNDING / 2, 0.2, "yes"),
        (0.2 + 1e-6, 0.2, "NO"),
        (-0.5, 0.0, "yes"),
        (9.0, None, ""),
    ],
)
def test_a_bound_holds_up_to_rounding(line_of, measured, bound, holds):
    assert line_of({**GOOD, "measured": measured, "bound": bound})["holds"] == holds


def test_one_run_above_its_own_bound_is_enough(line_of):
    """Though the mean regret is below the mean bound."""
    line = line_of({**GOOD, "measured": 0.3}, {**GOOD, "bound": 5.0})
    assert float(line["measured_mean"]) < float(line["bound_mean"])
    assert (line["holds"], line["broken_seeds"]) == ("NO", "0")


@pytest.mark.parametrize(
    "damaged",
    [
        "none",
        {},
        {**GOOD, "measured": "0.1"},
        {**GOOD, "measured": True},
        {**GOOD, "measured": math.nan},
        {**GOOD, "bound": math.inf},
        {**GOOD, "mu": None},
    ],
)
def test_what_is_no_regret_is_left_out(line_of, damaged):
    assert line_of(GOOD, damaged)["seeds"] == "0"
