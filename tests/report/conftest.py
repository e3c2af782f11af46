"""What the report's tests share."""

import csv
import io

import pytest

from robustmd.report.numbers import Rule, studies
from robustmd.report.render import to_csv
from robustmd.report.write import write_report
from robustmd.runs.records import read_records


@pytest.fixture
def written(outputs, tmp_path):
    """Writes `report` of what lies in `outputs`, without figures, each time that it is called."""
    return lambda **options: write_report(
        outputs.root, tmp_path / "report", **{"draw": False, **options}
    )


@pytest.fixture
def study_of(outputs):
    """The only study of what lies in `outputs`, when it is called."""

    def made(name="last40", spread="std", asked=None):
        (study,), _ = studies(read_records(outputs.root), Rule(name), spread, asked)
        return study

    return made


@pytest.fixture
def csv_rows():
    """What a DataFrame says as a CSV file, or such a file, a dict for each row."""

    def read(table):
        text = table.read_text("utf-8") if hasattr(table, "read_text") else to_csv(table)
        return list(csv.DictReader(io.StringIO(text)))

    return read


@pytest.fixture
def by_method(csv_rows):
    """{method: its row} of a table with one each."""
    return lambda table: {row["method"]: row for row in csv_rows(table)}
