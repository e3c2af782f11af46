"""The regret table: what a run must have recorded to be in it, and when a bound holds."""

import math

import pytest

from robustmd.report.regret import ROUNDING, regret_rows, regret_sheet, unreadable_regrets

GOOD = {"measured": 0.1, "bound": 0.2, "mu": 1.5, "updates": 100}


@pytest.fixture
def rows_of(outputs, section_of):
    def made(*regrets):
        for seed, regret in enumerate(regrets):
            outputs.run("opt", seed, extra={} if regret is None else {"regret": regret})
        section = section_of()
        return section, regret_rows(section)

    return made


def test_mean_and_spread_over_the_runs_that_recorded_one(rows_of, csv_rows):
    _, (row,) = rows_of(GOOD, {**GOOD, "measured": 0.2, "bound": 0.4, "mu": 3.0}, None)
    assert row.measured.mean == pytest.approx(0.15)
    assert row.measured.std == pytest.approx(0.1 / math.sqrt(2))
    assert row.bound.mean == pytest.approx(0.3)
    (line,) = csv_rows(regret_sheet([row]))
    assert (line["n"], line["seeds"], line["mu_max"]) == ("2", "0 1", "3.0")
    assert (line["holds"], line["broken_seeds"]) == ("yes", "")


@pytest.mark.parametrize(
    ("measured", "bound", "holds"),
    [
        (0.2, 0.2, "yes"),
        (0.2 + ROUNDING / 2, 0.2, "yes"),
        (0.2 + 1e-6, 0.2, "NO"),
        (-0.5, 0.0, "yes"),
        (9.0, None, "–"),
    ],
)
def test_a_bound_holds_up_to_rounding(rows_of, measured, bound, holds):
    _, (row,) = rows_of({**GOOD, "measured": measured, "bound": bound})
    assert row.holds == holds


def test_one_run_above_its_own_bound_is_enough(rows_of, csv_rows):
    """Though the mean regret is below the mean bound."""
    _, (row,) = rows_of({**GOOD, "measured": 0.3}, {**GOOD, "bound": 5.0})
    assert row.measured.mean < row.bound.mean
    (line,) = csv_rows(regret_sheet([row]))
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
def test_what_is_no_regret_is_remarked_on_and_left_out(rows_of, damaged):
    section, rows = rows_of(GOOD, damaged)
    assert [row.seeds for row in rows] == [(0,)]
    (remark,) = unreadable_regrets(section)
    assert (remark.scope, remark.run.seed) == ("remark", 1)
