"""The committed runs give the committed tables, and the hand-computed values stand in them."""

import csv
import os
import shutil
from pathlib import Path

import pytest

from robustmd.report.numbers import Rule
from robustmd.report.write import write_report

GOLDEN = Path(__file__).parent / "golden"
RUNS = GOLDEN / "runs"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return write_report(RUNS, tmp_path_factory.mktemp("golden") / "report", draw=False)


def tables_of(result):
    out = result.out
    found = {path.relative_to(out).as_posix() for path in result.files}
    return {name for name in found if name.endswith(".csv")}


def test_the_tables_are_those_committed(result):
    made = tables_of(result)
    if os.environ.get("ROBUSTMD_WRITE_GOLDEN"):
        shutil.rmtree(GOLDEN / "report", ignore_errors=True)
        for name in made:
            (GOLDEN / "report" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(result.out / name, GOLDEN / "report" / name)
    committed = GOLDEN / "report"
    assert made == {p.relative_to(committed).as_posix() for p in committed.rglob("*.*")}
    for name in sorted(made):
        expected, found = (folder / name for folder in (committed, result.out))
        assert cells(found) == cells(expected), name


def cells(path):
    """Numbers up to rounding."""
    return [
        [close(cell) for cell in row] for row in csv.reader(path.read_text("utf-8").splitlines())
    ]


def close(cell):
    try:
        return pytest.approx(float(cell), rel=1e-9, abs=1e-12)
    except ValueError:
        return cell


@pytest.mark.parametrize(("kind", "text"), [("std", "5.29"), ("sem", "3.06"), ("ci95", "13.14")])
def test_worst_accuracies_82_84_92(kind, text, tmp_path, by_method):
    write_report(RUNS, tmp_path / "report", "digits", spread=kind, draw=False)
    folder = tmp_path / "report" / "digits"
    even = by_method(folder / "table.csv")["even"]
    assert float(even["worst_test_accuracy_mean"]) == 86.0
    assert f"{float(even[f'worst_test_accuracy_{kind}']):.2f}" == text
    assert f"86.00 ± {text}" in (folder / "table.md").read_text("utf-8")
    assert rf"86.00 $\pm$ {text}" in (folder / "table.tex").read_text("utf-8")


def test_domains_80_90_and_90_80_have_a_worst_of_80(result, by_method):
    even = by_method(result.out / "toy_1" / "table.csv")["even"]
    assert float(even["worst_test_accuracy_mean"]) == 80.0
    assert float(even["a_test_accuracy_mean"]) == 85.0
    assert float(even["mean_test_accuracy_mean"]) == 85.0


def test_the_other_rule_gives_other_numbers_and_says_so(tmp_path, by_method):
    result = write_report(RUNS, tmp_path / "report", "digits", rule=Rule("final"), draw=False)
    even = by_method(result.out / "digits" / "table.csv")["even"]
    assert float(even["worst_test_accuracy_mean"]) == 88.0  # 84 + 4: the last step
    assert even["selection"] == "final"
    assert "Every value is of the final measurement" in result.sections[0].results.caption
