"""The committed runs give the committed tables, and the hand-computed values stand in them."""

import os
import shutil
from pathlib import Path

import pytest
from conftest import summary_text

from robustmd.report import report
from robustmd.report.report import write_report
from robustmd.report.selection import Selection

GOLDEN = Path(__file__).parent / "golden"
RUNS = GOLDEN / "runs"
DIFFERENT = (".png", ".pdf", ".html")  # drawn: their looks are not compared byte by byte
PAGE = "README.md"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "draw_all", lambda one: iter(()))
        return write_report(RUNS, tmp_path_factory.mktemp("golden") / "report")


def tables_of(result):
    out = result.out
    found = {path.relative_to(out).as_posix() for path in result.files}
    return {name for name in found if not name.endswith(DIFFERENT) and name != PAGE}


def shown(result):
    return summary_text(result).replace(str(result.out), "report")


def test_the_tables_are_those_committed(result):
    made = tables_of(result)
    if os.environ.get("ROBUSTMD_WRITE_GOLDEN"):
        shutil.rmtree(GOLDEN / "report", ignore_errors=True)
        for name in made:
            (GOLDEN / "report" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(result.out / name, GOLDEN / "report" / name)
        (GOLDEN / "terminal.txt").write_text(shown(result), "utf-8")
    committed = GOLDEN / "report"
    assert made == {p.relative_to(committed).as_posix() for p in committed.rglob("*.*")}
    for name in sorted(made):
        expected = (committed / name).read_text("utf-8")
        assert (result.out / name).read_text("utf-8") == expected, name
    assert shown(result) == (GOLDEN / "terminal.txt").read_text("utf-8")


@pytest.mark.parametrize(("kind", "text"), [("std", "5.29"), ("sem", "3.06"), ("ci95", "13.14")])
@pytest.mark.usefixtures("tables_only")
def test_worst_accuracies_82_84_92(kind, text, tmp_path, by_method):
    result = write_report(RUNS, tmp_path / "report", "digits", spread=kind)
    folder = tmp_path / "report" / "digits"
    even = by_method(folder / "table.csv")["even"]
    assert float(even["worst_test_accuracy_mean"]) == 86.0
    assert f"{float(even[f'worst_test_accuracy_{kind}']):.2f}" == text
    assert f"86.00 ± {text}" in (folder / "table.md").read_text("utf-8")
    assert rf"86.00 $\pm$ {text}" in (folder / "table.tex").read_text("utf-8")
    assert f"86.00 ± {text}" in summary_text(result)
    assert result.sections[0].section.spread == kind


def test_domains_80_90_and_90_80_have_a_worst_of_80(result, by_method):
    even = by_method(result.out / "toy_1" / "table.csv")["even"]
    assert float(even["worst_test_accuracy_mean"]) == 80.0
    assert float(even["a_test_accuracy_mean"]) == 85.0
    assert float(even["mean_test_accuracy_mean"]) == 85.0


@pytest.mark.usefixtures("tables_only")
def test_the_other_rule_gives_other_numbers_and_says_so(tmp_path, by_method):
    result = write_report(RUNS, tmp_path / "report", "digits", selection=Selection("final"))
    even = by_method(result.out / "digits" / "table.csv")["even"]
    assert float(even["worst_test_accuracy_mean"]) == 88.0  # 84 + 4: the last step
    assert even["selection"] == "final"
    assert "Every value is of the final measurement" in result.sections[0].table.caption
