"""The table of results: worst-case columns first, sortable, published rows apart."""

from robustmd.report.estimate import Estimate
from robustmd.report.page_html.markup import Markup, el, join, scrolling
from robustmd.report.quantities import WORST_TEST_ACCURACY, Quantity
from robustmd.report.table import Row, Table, cell_text, heading


def results(table: Table) -> Markup:
    """Methods as rows."""
    order = column_order(table)
    worst, *others = (_column(table.columns[i]) for i in order)
    counts = [
        header("n", "descending", class_="num"),
        header("cfg", "ascending", class_="num"),
    ]
    named = [header("worst domain", "ascending")] if table.is_many else []
    head = el("tr", header("method", "ascending"), worst, *named, *counts, *others)
    ours = [_row(table, place, order) for place, row in enumerate(table.rows) if not row.published]
    theirs = [_row(table, place, order) for place, row in enumerate(table.rows) if row.published]
    bodies = [el("tbody", *rows) for rows in (ours, theirs) if rows]
    content = el("table", el("thead", head), *bodies)
    caption = el("p", table.caption, class_="dim")
    return join(scrolling(content, f"results of {table.data}"), caption)


def column_order(table: Table) -> list[int]:
    """Worst test accuracy, the other worst-case columns, the mean, then the domains'; of many
    domains the worst tenth before the mean, and none of the domains."""

    def rank(place: int) -> tuple[int, int]:
        column = table.columns[place]
        if column.domain is not None:
            return 3, place
        return (0 if column == WORST_TEST_ACCURACY else 1 if column.is_worst else 2), place

    return sorted(table.shown, key=rank)


def header(text: str, first: str, **attributes: object) -> Markup:
    """A heading that sorts; `first`: the order of the first click."""
    return el("th", el("button", text, type="button"), scope="col", data_first=first, **attributes)


def _column(column: Quantity) -> Markup:
    first = "ascending" if column.is_loss else "descending"
    return header(heading(column), first, class_="num worst" if column.is_worst else "num")


def _row(table: Table, place: int, order: list[int]) -> Markup:
    row: Row = table.rows[place]
    cells = []
    for i in order:
        cell, column = row.cells[i], table.columns[i]
        value = cell.mean if isinstance(cell, Estimate) else cell or ""
        kind = " ".join(
            filter(None, ("num", "worst" if column.is_worst else "", table.marks(place, i)))
        )
        text = cell_text(cell, column, table.spread)
        cells.append(el("td", text, class_=kind, data_value=value))
    counts = [el("td", text, class_="num") for text in (row.n, row.configured)]
    named = [el("td", row.worst_text)] if table.is_many else []
    cells[1:1] = [*named, *counts]
    name = el("th", row.title, scope="row")
    return el("tr", name, *cells, class_="published" if row.published else None)
