"""What the report's tests share."""

import pytest

from robustmd.report import report


@pytest.fixture
def tables_only(monkeypatch):
    """A report without its figures, which take most of its time: for tests of what it says."""
    monkeypatch.setattr(report, "draw_all", lambda one: iter(()))
