"""Warnings of several runs as one line each."""

from types import SimpleNamespace

import pytest

from robustmd.report.missing import messages
from robustmd.report.renderers import to_latex, to_markdown
from robustmd.report.table import build_table
from robustmd.runs.reader import collect


def runs(*warnings):
    return [SimpleNamespace(summary={"warnings": said}) for said in warnings]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([["w"], ["w"], []], ["w (2 of 3 runs)"]),
        ([["w", "w"]], ["w (1 of 1 run)"]),
        (["no list", None, [1.5]], ["1.5 (1 of 3 runs)"]),
    ],
)
def test_messages_are_said_once_with_the_number_of_runs(said, shown):
    assert list(messages(runs(*said), "warnings")) == shown


def test_a_run_that_never_stops_talking_is_cut_short(outputs):
    outputs.run(extra={"warnings": [f"word{'x' * i}" for i in range(3000)]})
    lines = messages(collect(outputs.root).runs, "warnings")
    assert len(lines) == 51
    assert lines[-1] == "and 2,950 more warnings (1 of 1 run)"


def test_rows_that_warn_of_the_same_share_a_line(outputs, section_of):
    for method in ("even", "opt", "kl"):
        said = ["weights drift"] if method != "opt" else ["weights drift", "stuck"]
        outputs.run(method, extra={"warnings": said})
    table = build_table(section_of())
    assert table.sheet.warnings == (
        "even, opt, kl: weights drift (1 of 1 run)",
        "opt: stuck (1 of 1 run)",
    )
    assert to_markdown(table.sheet).count("weights drift") == 1
    assert to_latex(table.sheet).count("weights drift") == 1
