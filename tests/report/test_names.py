"""Names from configs, made fit for where they are shown."""

import pytest
from conftest import summary_text
from hypothesis import given
from hypothesis import strategies as st

import robustmd
from robustmd.errors import printable
from robustmd.report.figures import wrapped
from robustmd.report.render import latex, markdown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a&b_<i>", r"a\&b\_\textless{}i\textgreater{}"),
        ("50%#$~^\\{}", r"50\%\#\$\textasciitilde{}\textasciicircum{}\textbackslash{}\{\}"),
        ("[x]*", "{[}x{]}{*}"),
        ("opt λ=0.1 ± é", r"opt $\lambda$=0.1 $\pm$ é"),
    ],
)
def test_latex(name, shown):
    assert latex(name) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("best_response", "best_response"),
        ("_x_", r"\_x\_"),
        ("a&b_<i>", r"a&amp;b\_\<i\>"),
        ("a|b", r"a\|b"),
        ("*b* `c` [d](e)", r"\*b\* \`c\` \[d\](e)"),
    ],
)
def test_markdown(name, shown):
    assert markdown(name) == shown


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "right\u202eleft", "nul\0"])
def test_nothing_steers_a_terminal_or_breaks_a_line(name):
    assert printable(name).isprintable()
    assert "\\" in printable(name)


@given(st.text())
def test_any_text_is_one_line_everywhere(text):
    for shown in (printable(text), latex(text), markdown(text)):
        assert "\n" not in shown
        assert shown.isprintable()


def test_a_legend_hides_no_label():
    assert wrapped("_x", 9) == " _x"


SHOWN = (".md", ".html", ".csv", ".tex")


def test_names_of_a_stranger_are_escaped_in_every_file_of_a_report(outputs, written):
    named = {"[red]a": (0.5, 80.0), "b\u202ec": (0.4, 82.0), "d\u200be\x1b]0;x\x07": (0.3, 84.0)}
    outputs.run("even", 0, train=named)
    outputs.run("opt\x1b[31m", 0, train=named, folder="\x1b]0;y\x07")
    outputs.run("even", 1, train=named, extra={"status": "failed", "message": "\u2066z"})
    outputs.run("a&b_<i>", 0, train=named, extra={"warnings": ["w"]})
    result = written()
    files = [path for path in result.out.rglob("*") if path.suffix in SHOWN]
    shown = {path.name: path.read_text("utf-8") for path in files}
    shown["terminal"] = summary_text(result)
    assert {"README.md", "index.html", "table.csv", "table.tex", "runs.csv"} <= shown.keys()
    for name, text in shown.items():
        assert [line for line in text.split("\n") if line != printable(line)] == [], name
    for name in ("index.html", "table.csv"):
        assert all(part in shown[name] for part in ("[red]a", r"b\u202ec", r"d\u200be\x1b]0;x\x07"))
    assert r"| a&amp;b\_\<i\> † |" in shown["README.md"]
    assert r"a\&b\_\textless{}i\textgreater{} $^\dagger$ &" in shown["table.tex"]
    assert "<i>" not in shown["index.html"]
    assert "a&b_<i> †" in shown["terminal"]


def test_a_spreadsheet_runs_no_name(outputs, written):
    named = {"=cmd|' /C calc'!A0": (0.5, 80.0), "+1": (0.4, 82.0), "@SUM(A1)": (0.3, 84.0)}
    outputs.run("even", train=named)
    for path in written().files:
        if path.suffix == ".csv":
            cells = path.read_text("utf-8").replace("\n", ",").split(",")
            assert not [one for one in cells if one.strip('"').startswith(("=", "+", "@"))], path


def test_a_run_is_drawn_whatever_its_domains_are_called(outputs):
    named = {"$$": (0.5, 80.0), "_name": (0.4, 82.0), "$\\frac$": (0.3, 84.0)}
    path = outputs.run("even", train=named, curve=[dict.fromkeys(named, 1.0)])
    figure = robustmd.load_run(path).plot()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "$$",
        " _name",
        "$\\frac$",
    ]
    assert figure._repr_png_().startswith(b"\x89PNG")
