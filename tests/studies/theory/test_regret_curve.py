"""The regret bound against c: the values to test against, and the files."""

import csv
import io

import pytest

from robustmd.studies.theory.regret_curve import RegretCurve, draw, to_csv


def test_the_papers_example():
    curve = RegretCurve()
    assert curve.best_c == pytest.approx(4975.2469, rel=1e-6)
    assert curve.best == pytest.approx(36516.463, rel=1e-6)
    assert curve.plain == pytest.approx(74077.553, rel=1e-6)
    assert "ratio 0.4929" in curve.summary()


def test_the_csv_holds_the_curve_its_minimum_and_the_plain_step():
    curve = RegretCurve()
    rows = list(csv.DictReader(io.StringIO(to_csv(curve))))
    assert float(rows[0]["c"]) == 0
    assert float(rows[0]["regret_bound"]) == curve.plain
    lowest = min(rows, key=lambda row: float(row["regret_bound"]))
    assert lowest["note"] == "c*"
    assert float(lowest["c"]) == curve.best_c


def test_the_figure_marks_both():
    (axis,) = draw(RegretCurve()).axes
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert any("c* = 4,975: 36,516 (0.49 of it)" in label for label in labels)
    assert any("74,078" in label for label in labels)
    assert axis.get_xscale() == "log"
