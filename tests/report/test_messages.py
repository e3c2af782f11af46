"""Warnings of several runs as one line each."""

from types import SimpleNamespace

import pytest

from robustmd.report.missing import messages
from robustmd.report.renderers import to_latex, to_markdown
from robustmd.report.table import build_table
from robustmd.runs.reader import collect


def runs(*warnings, domains=("svhn", "s 8", "σ=4")):
    return [SimpleNamespace(summary={"warnings": said}, measured=domains) for said in warnings]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([["w"], ["w"], []], ["w (2 of 3 runs)"]),
        ([["w", "w"]], ["w (1 of 1 run)"]),
        ([["up to 9; lam=3.9"], ["up to 10; lam=3.9"]], ["up to 9–10; lam=3.9 (2 of 2 runs)"]),
        (
            [["b 1e-3", "a"], ["a", "b 2.5e-02"]],
            ["b 1e-3–2.5e-02 (2 of 2 runs)", "a (2 of 2 runs)"],
        ),
        ([["on svhn"], ["on mnist"]], ["on svhn (1 of 2 runs)", "on mnist (1 of 2 runs)"]),
        ([["on s 8"], ["on s 9"]], ["on s 8 (1 of 2 runs)", "on s 9 (1 of 2 runs)"]),
        ([["on σ=4, 4"], ["on σ=4, 5"]], ["on σ=4, 4–5 (2 of 2 runs)"]),
        ([["conv8"], ["conv9"]], ["conv8 (1 of 2 runs)", "conv9 (1 of 2 runs)"]),
        ([["v1.5.2"], ["v1.5.3"]], ["v1.5.2 (1 of 2 runs)", "v1.5.3 (1 of 2 runs)"]),
        (["no list", None, [1.5]], ["1.5 (1 of 3 runs)"]),
        ([["at 2", "at 4"], ["at 3"]], ["at 2–4 (2 of 2 runs)"]),
    ],
)
def test_messages_are_said_once_with_the_range_of_their_numbers(said, shown):
    assert list(messages(runs(*said), "warnings")) == shown


def test_a_domain_without_a_name_changes_nothing():
    assert messages(runs(["at 2"], ["at 3"], domains=("",)), "warnings") == (
        "at 2–3 (2 of 2 runs)",
    )


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
