"""A damaged copy of the committed runs: the report still comes, right, and says what is not in."""

import csv
import shutil
from pathlib import Path

import pytest
from conftest import summary_text

from robustmd.report.report import write_report

pytestmark = pytest.mark.usefixtures("tables_only")
RUNS = Path(__file__).parent / "golden" / "runs"
EVEN = "digits/even/00000000/seed={}"


@pytest.fixture
def runs(tmp_path):
    return Path(shutil.copytree(RUNS, tmp_path / "runs"))


def reported(runs, tmp_path):
    """(the digits table by row, the page, the terminal's text)."""
    result = write_report(runs, tmp_path / "report")
    with (tmp_path / "report" / "digits" / "table.csv").open(encoding="utf-8") as stream:
        table = {row["method"]: row for row in csv.DictReader(stream)}
    return table, result.page.read_text("utf-8"), summary_text(result)


def delete_line(path, part):
    lines = path.read_text("utf-8").splitlines(keepends=True)
    lost = next(i for i, line in enumerate(lines) if line.startswith(part))
    path.write_text("".join(lines[:lost] + lines[lost + 1 :]), "utf-8")


def test_a_row_lost_from_the_last_measurement(runs, tmp_path):
    delete_line(runs / EVEN.format(2) / "metrics.csv", "60,6.0,test,svhn")
    table, page, text = reported(runs, tmp_path)
    assert (table["even"]["n"], table["even"]["seeds"]) == ("2", "0 1")
    assert float(table["even"]["worst_test_accuracy_mean"]) == 81.0
    reason = "metrics.csv lacks the final measurement (iteration 60) of test on svhn"
    assert f"| {EVEN.format(2)} | run left out | {reason} |" in page
    assert f"seed 2 is not in it: {reason}" in text


def test_a_row_lost_earlier(runs, tmp_path):
    delete_line(runs / EVEN.format(2) / "metrics.csv", "50,5.0,test,svhn")
    table, page, _ = reported(runs, tmp_path)
    # of seed 2: 86, 88, 90, 94 in place of the five around 90; mean (80 + 82 + 89.5)/3
    assert float(table["even"]["worst_test_accuracy_mean"]) == pytest.approx(251.5 / 3)
    assert table["even"]["n"] == "3"
    assert f"| {EVEN.format(2)} | measurement left out | metrics.csv: test at iteration 50" in page


def test_half_a_summary(runs, tmp_path):
    path = runs / EVEN.format(0) / "summary.json"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    table, page, text = reported(runs, tmp_path)
    assert float(table["even"]["worst_test_accuracy_mean"]) == 86.0
    assert f"| {EVEN.format(0)} | run left out | summary.json is not valid JSON" in page
    assert "seed 0 is not in it: summary.json is not valid JSON" in text
    assert "| even | 0 | summary.json is not valid JSON" in page
    assert "robustmd train method=even data=digits seed=0" in page
