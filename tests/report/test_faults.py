"""A damaged copy of the committed runs: the report still comes, right, and says what is not in."""

import csv
import json
import re
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


def test_a_file_that_links_out_of_the_tree(runs, tmp_path):
    path = runs / EVEN.format(1) / "metrics.csv"
    outside = shutil.move(path, tmp_path / "metrics.csv")
    path.symlink_to(outside)
    table, page, _ = reported(runs, tmp_path)
    assert table["even"]["seeds"] == "0 2"
    assert "| run left out | metrics.csv: is reached by a symbolic link: not followed |" in page


def test_a_method_with_a_hostile_name(runs, tmp_path):
    for path in (runs / "digits" / "opt").glob("*/seed=*"):
        config = (path / "config.yaml").read_text("utf-8")
        (path / "config.yaml").write_text(config.replace("name: opt", "name: a&b_<i>"), "utf-8")
        summary = json.loads((path / "summary.json").read_text("utf-8")) | {"method": "a&b_<i>"}
        (path / "summary.json").write_text(json.dumps(summary), "utf-8")
    table, page, text = reported(runs, tmp_path)
    assert float(table["a&b_<i>"]["worst_test_accuracy_mean"]) == pytest.approx(257.8 / 3)
    assert r"| a&amp;b\_\<i\> † | 3 | 1 |" in page
    assert re.search(r"a&b_<i> − even +worst test accuracy +\+1.93 points", text)
    tex = (tmp_path / "report" / "digits" / "table.tex").read_text("utf-8")
    assert r"a\&b\_\textless{}i\textgreater{}$^\dagger$ & 3 & 1 &" in tex
    html = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "<i>" not in html.replace("</i>", "")


def test_all_of_it_at_once(runs, tmp_path):
    delete_line(runs / EVEN.format(2) / "metrics.csv", "60,6.0,test,svhn")
    (runs / EVEN.format(1) / "summary.json").write_text("{", "utf-8")
    (runs / EVEN.format(0) / "config.yaml").write_text(": [", "utf-8")
    table, page, _ = reported(runs, tmp_path)
    assert "even" not in table
    assert table["opt"]["n"] == "3"
    assert page.count("| run left out |") == 4
    assert "### Paired differences to individual" in page  # what is left to compare with
