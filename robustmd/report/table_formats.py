"""A table as Markdown and as CSV; LaTeX has a file of its own."""

import csv
import io

from robustmd.report.names import clean, markdown
from robustmd.report.published import SOURCE
from robustmd.report.table import WARNED, Cell, Estimate, Table, cell_text

_MARKED = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}


def to_markdown(table: Table) -> str:
    """A pipe table under its caption; what runs warned of and noted below it."""
    head = ["method", "n", "cfg", *map(table.heading, table.shown)]
    text_columns = 0
    if table.is_many:
        head.append("worst domain")
        text_columns = 1
    lines = [
        f"{markdown(table.caption)}\n",
        "| " + " | ".join(markdown(text) for text in head) + " |",
        "|" + " --- |" + " ---: |" * (len(head) - 1 - text_columns) + " --- |" * text_columns,
    ]
    for i, row in enumerate(table.rows):
        cells = [markdown(row.title), row.n, row.configured]
        for j in table.shown:
            text = cell_text(row.cells[j], table.columns[j], table.spread)
            cells.append(_MARKED[table.marks(i, j)].format(text))
        if table.is_many:
            cells.append(markdown(row.worst_text))
        lines.append("| " + " | ".join(cells) + " |")
    if table.warnings:
        lines += [f"\n{WARNED} Warnings:\n", *(f"- {markdown(line)}" for line in table.warnings)]
    if table.notes:
        lines += ["\nNotes of these runs:\n", *(f"- {markdown(line)}" for line in table.notes)]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """One line a row, with every digit: <column>_mean and <column>_<kind of spread>. Published
    numbers stand in the mean's column, as printed; an empty field is a number that does not
    exist. Of many domains the worst one, and in how many runs it is, stand at the end."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    parts = ("mean", table.spread)
    numbers = [f"{clean(c.name)}_{part}" for c in table.columns for part in parts]
    last = ["worst_domain", "worst_in"] if table.is_many else []
    head = ["method", "source", "n", "configurations", "seeds", "selection", *numbers, *last]
    writer.writerow(head)
    for row in table.rows:
        source = SOURCE if row.published else "this report"
        counts = ("", "") if row.published else (len(row.seeds), row.configurations)
        rule = "" if row.published else table.selection.name
        seeds = " ".join(map(str, row.seeds))
        values = [number for cell in row.cells for number in _csv_pair(cell, table)]
        worst = row.worst_domain
        named = [clean(worst.name), worst.runs] if worst is not None else []
        writer.writerow([row.label, source, *counts, seeds, rule, *values, *named])
    return out.getvalue()


def _csv_pair(cell: Cell, table: Table) -> tuple[float | str, float | str]:
    if isinstance(cell, Estimate):
        spread = cell.spread(table.spread)
        return cell.mean, "" if spread is None else spread
    return cell or "", ""
