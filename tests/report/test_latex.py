"""The LaTeX table: sound in its structure everywhere, compiled where pdflatex is."""

import re
import shutil
import subprocess

import pytest

NAMES = ("a&b_<i>", "[x] ^~\\ {", "plus é", "*star", "%", "$#")
DOCUMENT = (
    "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    "\\input{report/digits/table.tex}\n\\end{document}\n"
)


@pytest.fixture
def table(outputs, written):
    """table.tex of rows with every hostile name, two seeds, a warning, and the published rows."""
    domains = {"mnist": (0.1, 90.0), "svhn": (0.1, 91.0)}
    for name in NAMES:
        outputs.run(name, data="digits", train=domains)
    for seed in (0, 1):
        extra = {"warnings": ["50 % of all_weight & more"]}
        outputs.run("even", seed, data="digits", train=domains, extra=extra)
    return (written().out / "digits" / "table.tex").read_text("utf-8")


def test_every_row_has_as_many_cells_as_there_are_columns(table):
    (columns,) = re.findall(r"\\begin\{tabular\}\{(.*)\}", table)
    assert set(columns) == {"l", "r"}
    body = table.partition("\\toprule\n")[2].partition("\\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) >= len(NAMES) + 6
    for row in rows:
        cells = re.split(r"(?<!\\)&", row)
        spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
        assert len(cells) + sum(spans) - len(spans) == len(columns), row


def test_groups_environments_and_dollars_are_balanced(table):
    plain = re.sub(r"\\[\\{}$%&#_]", "", table)
    depth = 0
    for letter in plain:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert plain.count("$") % 2 == 0
    found = re.findall(r"\\(begin|end)\{(\w+)\}", table)
    assert found == [("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table")]
    comments = [line for line in plain.splitlines() if "%" in line]
    assert comments == [r"% needs \usepackage{booktabs}"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed here")
def test_it_compiles_in_a_minimal_document(table, tmp_path):
    assert table
    (tmp_path / "document.tex").write_text(DOCUMENT, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "document.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "document.pdf").exists()
