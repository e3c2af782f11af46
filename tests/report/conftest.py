"""What the report's tests share."""

import csv
import io

import pytest

from robustmd.report import report
from robustmd.report.aggregate import sections
from robustmd.report.renderers import to_csv
from robustmd.report.report import write_report
from robustmd.report.selection import Selection
from robustmd.runs.reader import collect


@pytest.fixture
def tables_only(monkeypatch):
    """A report without its figures, which take most of its time: for tests of what it says."""
    monkeypatch.setattr(report, "draw_all", lambda one: iter(()))


@pytest.fixture
def written(outputs, tmp_path, tables_only):
    """Writes `report` of what lies in `outputs`, without figures, each time that it is called."""
    return lambda **options: write_report(outputs.root, tmp_path / "report", **options)


@pytest.fixture
def section_of(outputs):
    """The only table of what lies in `outputs`, when it is called."""

    def made(selection="last40"):
        found = collect(outputs.root)
        (section,), _ = sections(found.runs, Selection(selection), found.problems)
        return section

    return made


@pytest.fixture
def csv_rows():
    """What a table says as a CSV file, or such a file, a dict for each row."""

    def read(sheet):
        text = sheet.read_text("utf-8") if hasattr(sheet, "read_text") else to_csv(sheet)
        return list(csv.DictReader(io.StringIO(text)))

    return read


@pytest.fixture
def by_method(csv_rows):
    """{method: its row} of a table with one each."""
    return lambda sheet: {row["method"]: row for row in csv_rows(sheet)}
