"""Every format of a `Sheet`, and the templates of the pages. Text is made fit for the format here
and nowhere else; what stands in a column of numbers is ours and stays as it is."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from itertools import groupby
from operator import attrgetter

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.errors import printable
from robustmd.report.names import latex, markdown
from robustmd.report.published import SOURCE
from robustmd.report.sheet import WARNED, Column, Mark, Row, Sheet

_MARKDOWN: Mapping[Mark, str] = {"best": "**{}**", "second": "<u>{}</u>", "broken": "**{}**"}
_LATEX: Mapping[Mark, str] = {"best": r"\textbf{%s}", "second": r"\underline{%s}"}
_TERMINAL: Mapping[Mark, str] = {
    "best": "bold",
    "second": "underline",
    "broken": "bold red",
    "better": "green",
    "worse": "red",
    "equivalent": "cyan",
    "undecided": "yellow",
}
_ALIGNED = {"text": "l", "number": "r", "code": "l", "long": r"p{0.5\linewidth}"}


def html_templates(**values: object) -> Environment:
    """Templates of HTML with these functions and values. What is not `Markup` is escaped, and what
    would break a line, steer a terminal or turn the direction of text is written out."""
    return _templates(printable, values, autoescape=True)


def markdown_templates(**values: object) -> Environment:
    """The same for Markdown, whose characters are escaped; `x | safe` is Markdown already."""
    return _templates(lambda value: markdown(str(value)), values, autoescape=False)


def asset(name: str) -> str:
    """A file beside the templates, as it is."""
    return (resources.files("robustmd.report") / "templates" / name).read_text("utf-8")


def _templates(
    text: Callable[[object], str], values: Mapping[str, object], *, autoescape: bool
) -> Environment:
    made = Environment(
        loader=PackageLoader("robustmd.report"),
        autoescape=autoescape,
        finalize=lambda value: value if isinstance(value, Markup) else text(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"to_markdown": lambda sheet: Markup(to_markdown(sheet)), **values}
    made.globals["WARNED"] = WARNED
    return made


def to_markdown(sheet: Sheet) -> str:
    """A pipe table under its caption; what runs warned of and noted below it."""
    lines = [[markdown(column.title or "") for column in sheet.head]]
    lines.append(["---:" if column.kind == "number" else "---" for column in sheet.head])
    for _, cells in sheet.body:
        texts = (text if column.kind == "number" else markdown(text) for column, _, text in cells)
        marks = (_MARKDOWN.get(cell.mark, "{}") for _, cell, _ in cells)
        lines.append([mark.format(text) for mark, text in zip(marks, texts, strict=True)])
    blocks = [f"**{markdown(alarm)}**" for alarm in sheet.alarms]
    blocks += [markdown(sheet.caption)] if sheet.caption else []
    blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    below = {f"{WARNED} Warnings:": sheet.warnings, "Notes of these runs:": sheet.notes}
    for title, said in below.items():
        if said:
            blocks += [title, "\n".join(f"- {markdown(line)}" for line in said)]
    return "\n\n".join(blocks) + "\n"


def to_csv(sheet: Sheet) -> str:
    """One line for each row, with every digit; an empty field is a number that does not exist."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([printable(name) for column in sheet.columns for name in column.names])
    places = [i for i, column in enumerate(sheet.columns) if column.names]
    for row in sheet.rows:
        values = (value for place in places for value in row.cells[place].values)
        writer.writerow([printable(value) if isinstance(value, str) else value for value in values])
    return out.getvalue()


def to_terminal(sheet: Sheet) -> RichTable:
    """For a console of rich."""
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for column in sheet.head:
        right = column.kind == "number"
        shown.add_column(Text(printable(column.title)), justify="right" if right else "left")
    for row, cells in sheet.body:
        texts = (Text(printable(text), _TERMINAL.get(cell.mark, "")) for _, cell, text in cells)
        shown.add_row(*texts, style="dim" if row.published else None)
    return shown


def to_latex(sheet: Sheet) -> str:
    """A `table` environment; compiles in a document that has `\\usepackage{booktabs}`."""
    title = rf"\emph{{Published ({latex(SOURCE)})}}"
    above = [r"\midrule", rf"\multicolumn{{{len(sheet.head)}}}{{l}}{{{title}}} \\"]
    body: list[str] = []
    for published, rows in groupby(sheet.rows, key=attrgetter("published")):
        body += above if published else []
        body += [_latex_row(sheet, row) for row in rows]
    said = " ".join([r"$^\dagger$", *(latex(line) + "." for line in sheet.warnings)])
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        rf"\centering\{sheet.letters}\setlength{{\tabcolsep}}{{2pt}}",
        rf"\caption{{{latex(sheet.caption)}}}\smallskip",
        rf"\begin{{tabular}}{{{''.join(_ALIGNED[column.kind] for column in sheet.head)}}}",
        r"\toprule",
        *_latex_groups(sheet.head),
        _latex_line(_latex_heading(column) for column in sheet.head),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if sheet.warnings:
        lines.append(rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize\raggedright {said}}}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_groups(columns: Iterable[Column]) -> list[str]:
    """The names above the columns, each over as many as are of it, and the rules below those."""
    names, rules, first = [], "", 1
    for group, members in groupby(columns, lambda column: column.group):
        count = len(list(members))
        if not group or count == 1:
            names += [latex(group)] * count
        else:
            names.append(rf"\multicolumn{{{count}}}{{c}}{{{latex(group)}}}")
            rules += rf"\cmidrule(lr){{{first}-{first + count - 1}}}"
        first += count
    head = " &".join(f" {name}" if name else "" for name in names)
    return [rf"{head} \\", *filter(None, [rules])] if any(names) else []


def _latex_heading(column: Column) -> str:
    """ "loss_tr" below its group with an index; n as a variable; the names of rows as a title."""
    if column.group:
        name, _, index = column.measure.partition("_")
        return rf"{name.capitalize()}$_\mathrm{{{index.capitalize()}}}$" if name else ""
    title = column.title or ""
    return {"n": "$n$", "method": "Method"}.get(title, latex(title))


def _latex_row(sheet: Sheet, row: Row) -> str:
    texts = []
    for place in sheet.shown:
        cell, is_number = row.cells[place], sheet.columns[place].kind == "number"
        text = latex(cell.whole(" ± " if is_number else " "))
        texts.append(_LATEX.get(cell.mark, "%s") % text)
    texts[0] += r"$^\dagger$" if row.warned else ""
    return _latex_line(texts)


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


FILES: Mapping[str, Callable[[Sheet], str]] = {"md": to_markdown, "tex": to_latex, "csv": to_csv}
