"""What the report's tests share."""

import csv
import io

import pytest

from robustmd.report import report
from robustmd.report.aggregate import sections
from robustmd.report.renderers import to_csv
from robustmd.report.selection import Selection
from robustmd.runs.reader import collect


@pytest.fixture
def tables_only(monkeypatch):
    """A report without its figures, which take most of its time: for tests of what it says."""
    monkeypatch.setattr(report, "draw_all", lambda one: iter(()))


@pytest.fixture
def section_of(outputs):
    """The only table of what lies in `outputs`, when it is called."""

    def made(selection="last5"):
        found = collect(outputs.root)
        (section,), _ = sections(found.runs, Selection(selection), found.problems)
        return section

    return made


@pytest.fixture
def csv_rows():
    """What a table's CSV file says, a dict for each row."""
    return lambda sheet: list(csv.DictReader(io.StringIO(to_csv(sheet))))
