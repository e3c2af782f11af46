"""Every format of a `Sheet`. Text is made fit for the format here and nowhere else; what stands in
a column of numbers is ours and stays as it is."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from urllib.parse import quote

from markupsafe import Markup, escape
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.errors import printable
from robustmd.report.names import latex, markdown
from robustmd.report.published import SOURCE
from robustmd.report.sheet import VERDICTS, WARNED, Cell, Column, Mark, Row, Sheet

_MARKDOWN: Mapping[Mark, str] = {"best": "**{}**", "second": "<u>{}</u>", "broken": "**{}**"}
_LATEX: Mapping[Mark, str] = {"best": r"\textbf{%s}", "second": r"\underline{%s}"}
_TERMINAL: Mapping[Mark, str] = {"best": "bold", "second": "underline"}
_ALIGNED = {"text": "l", "number": "r", "code": "l", "long": r"p{0.5\linewidth}"}


def to_markdown(sheet: Sheet) -> str:
    """A pipe table under its caption; what runs warned of and noted below it."""
    columns = [sheet.columns[j] for j in sheet.shown]
    lines = [f"**{markdown(alarm)}**\n" for alarm in sheet.alarms]
    lines += [f"{markdown(sheet.caption)}\n"] if sheet.caption else []
    lines.append(_pipes(markdown(column.title or "") for column in columns))
    lines.append(_pipes("---:" if column.kind == "number" else "---" for column in columns))
    for row in sheet.rows:
        cells = _cells(sheet, row)
        lines.append(_pipes(_markdown_cell(*one) for one in zip(cells, columns, strict=True)))
    if sheet.warnings:
        lines += [f"\n{WARNED} Warnings:\n", *(f"- {markdown(line)}" for line in sheet.warnings)]
    if sheet.notes:
        lines += ["\nNotes of these runs:\n", *(f"- {markdown(line)}" for line in sheet.notes)]
    return "\n".join(lines) + "\n"


def _cells(sheet: Sheet, row: Row) -> list[tuple[str, Mark]]:
    """(text, mark) of what is shown of a row, its name with what must be known beside it."""
    found = []
    for place in sheet.shown:
        cell, column = row.cells[place], sheet.columns[place]
        between = " ± " if column.kind == "number" else " "
        found.append((cell.whole(between), cell.mark))
    (name, mark), *others = found
    printed = " (published)" if row.published else ""
    return [(f"{name}{printed}{f' {WARNED}' if row.warned else ''}", mark), *others]


def _markdown_cell(cell: tuple[str, Mark], column: Column) -> str:
    text, mark = cell
    return _MARKDOWN.get(mark, "{}").format(text if column.kind == "number" else markdown(text))


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def to_csv(sheet: Sheet) -> str:
    """One line a row, with every digit; an empty field is a number that does not exist."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([printable(name) for column in sheet.columns for name in column.names])
    places = [i for i, column in enumerate(sheet.columns) if column.names]
    for row in sheet.rows:
        values = (value for place in places for value in row.cells[place].values)
        writer.writerow([printable(value) if isinstance(value, str) else value for value in values])
    return out.getvalue()


def to_latex(sheet: Sheet) -> str:
    """A `table` environment; compiles in a document that has `\\usepackage{booktabs}` and is narrow
    enough for a page's width at K = 2 and, since they are summarised, for many domains."""
    columns = [sheet.columns[j] for j in sheet.shown]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        rf"\centering\{sheet.letters}\setlength{{\tabcolsep}}{{2pt}}",
        rf"\caption{{{latex(sheet.caption)}}}\smallskip",
        rf"\begin{{tabular}}{{{''.join(_ALIGNED[column.kind] for column in columns)}}}",
        r"\toprule",
        *_latex_groups(columns),
        _latex_line(_latex_heading(column) for column in columns),
        r"\midrule",
        *(line for row in sheet.rows if not row.published for line in _latex_row(sheet, row)),
        *_latex_published(sheet),
        r"\bottomrule",
        r"\end{tabular}",
        *_latex_warnings(sheet),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


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


def _latex_row(sheet: Sheet, row: Row) -> list[str]:
    """A line and, where something stands beside its numbers, a smaller one of that below it."""
    small = r"\tiny" if sheet.letters == "tiny" else r"\scriptsize"
    texts, below = [], []
    for place in sheet.shown:
        cell = row.cells[place]
        texts.append(_LATEX.get(cell.mark, "%s") % latex(cell.text))
        is_spread = cell.beside and sheet.columns[place].kind == "number"
        below.append(rf"{{{small}$\pm${cell.beside}}}" if is_spread else latex(cell.beside))
    texts[0] += r"$^\dagger$" if row.warned else ""
    return [_latex_line(texts), *([_latex_line(below)] if any(below) else [])]


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_published(sheet: Sheet) -> list[str]:
    """Rows that are printed elsewhere, below a rule and a title."""
    lines = [line for row in sheet.rows if row.published for line in _latex_row(sheet, row)]
    if not lines:
        return []
    title = rf"\emph{{Published ({latex(SOURCE)})}}"
    return [r"\midrule", rf"\multicolumn{{{len(sheet.shown)}}}{{l}}{{{title}}} \\", *lines]


def _latex_warnings(sheet: Sheet) -> list[str]:
    """What the runs warned of, below the table."""
    if not sheet.warnings:
        return []
    said = " ".join([r"$^\dagger$", *(latex(line) + "." for line in sheet.warnings)])
    return [rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize\raggedright {said}}}"]


def to_terminal(sheet: Sheet) -> RichTable:
    """For a console of rich."""
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for place in sheet.shown:
        column = sheet.columns[place]
        justify = "right" if column.kind == "number" else "left"
        shown.add_column(Text(printable(column.title)), justify=justify)  # type: ignore[arg-type]
    for row in sheet.rows:
        cells = (
            Text(printable(text), _TERMINAL.get(mark, "")) for text, mark in _cells(sheet, row)
        )
        shown.add_row(*cells, style="dim" if row.published else None)
    return shown


def to_html(sheet: Sheet) -> Markup:
    """In a box that scrolls, by keyboard as well, with headings that sort; alarms above and the
    caption below it. Links lead to files beside the page, which says warnings and notes itself."""
    columns = [sheet.columns[j] for j in sheet.shown]
    ours = [_html_row(sheet, row) for row in sheet.rows if not row.published]
    theirs = [_html_row(sheet, row) for row in sheet.rows if row.published]
    bodies = (_BODY.format(Markup("\n").join(rows)) for rows in (ours, theirs) if rows)
    table = _TABLE.format(
        label=printable(sheet.name),
        head=Markup("").join(map(_html_heading, columns)),
        bodies=Markup("\n").join(bodies),
    )
    alarms = (_ALARM.format(printable(alarm)) for alarm in sheet.alarms)
    caption = Markup('\n<p class="dim">{}</p>').format(printable(sheet.caption))
    return Markup("").join([*alarms, table, caption if sheet.caption else ""])


_TABLE = Markup("""\
<div class="scroll" tabindex="0" role="region" aria-label="{label}">
<table>
<thead><tr>{head}</tr></thead>
{bodies}
</table>
</div>""")
_ALARM = Markup('<p class="missing"><strong>{}</strong></p>\n')
_BODY = Markup("<tbody>\n{}\n</tbody>")


def _html_heading(column: Column) -> Markup:
    return Markup(
        '<th scope="col" data-first="{}"{}><button type="button">{}</button></th>'
    ).format(column.first, _html_class(column), printable(column.title))


def _html_class(column: Column, mark: str = "") -> Markup:
    is_number = column.kind == "number"
    found = {"num": is_number, "wrap": column.kind in ("long", "code"), "worst": column.is_worst}
    names = [*(name for name, holds in found.items() if holds), *([mark] if mark else [])]
    return Markup(' class="{}"').format(" ".join(names)) if names else Markup("")


def _html_row(sheet: Sheet, row: Row) -> Markup:
    (name, _), *texts = _cells(sheet, row)
    cells = [Markup('<th scope="row">{}</th>').format(printable(name))]
    for place, (text, mark) in zip(sheet.shown[1:], texts, strict=True):
        cells.append(_html_cell(row.cells[place], sheet.columns[place], printable(text), mark))
    published = Markup(' class="published"') if row.published else ""
    return Markup("<tr{}>{}</tr>").format(published, Markup("").join(cells))


def _html_cell(cell: Cell, column: Column, text: str, mark: Mark) -> Markup:
    """`data-value` is what a column of numbers is sorted by."""
    shown = Markup("<code>{}</code>").format(text) if column.kind == "code" else escape(text)
    if mark in VERDICTS or mark == "broken":
        shown, mark = Markup('<strong class="{}">{}</strong>').format(mark, text), ""
    for name, path in cell.links:
        shown += Markup(' <a href="./{}">{}</a>').format(quote(path), name)
    value = Markup("")
    if column.kind == "number" and cell.values:
        number = "" if cell.values[0] is None else cell.values[0]
        value = Markup(' data-value="{}"').format(number)
    return Markup("<td{}{}>{}</td>").format(_html_class(column, mark), value, shown)


FILES: Mapping[str, Callable[[Sheet], str]] = {
    "md": to_markdown,
    "tex": to_latex,
    "csv": to_csv,
}
