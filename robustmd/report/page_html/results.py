"""The table of results: worst-case columns first, sortable, published rows apart."""

from robustmd.report.estimate import Estimate
from robustmd.report.page_html.markup import Markup, el, join, scrolling
from robustmd.report.quantities import WORST_TEST_ACCURACY
from robustmd.report.table import Row, Table, cell_text


def results(table: Table) -> Markup:
    """Methods as rows."""
    order = column_order(table)
    columns = [_column(table, i) for i in order]
    counts = [
        header("n", "descending", class_="num"),
        header("cfg", "ascending", class_="num"),
    ]
    named = [header("worst domain", "ascending")] if table.is_many else []
    at = _counts_at(table)
    columns[at:at] = [*named, *counts]
    head = el("tr", header("method", "ascending"), *columns)
    ours = [_row(table, place, order) for place, row in enumerate(table.rows) if not row.published]
    theirs = [_row(table, place, order) for place, row in enumerate(table.rows) if row.published]
    bodies = [el("tbody", *rows) for rows in (ours, theirs) if rows]
    content = el("table", el("thead", head), *bodies)
    caption = el("p", table.caption, class_="dim")
    return join(scrolling(content, f"results of {table.data}"), caption)


def column_order(table: Table) -> list[int]:
    """Worst test accuracy, the unseen domains', the other worst-case columns, the mean, then the
    domains'; of many domains the worst tenth before the mean, and none of the domains."""

    def rank(place: int) -> tuple[int, int]:
        column = table.columns[place]
        if column == WORST_TEST_ACCURACY:
            return 0, place
        if column.unseen:
            return 1, place
        return (4 if column.domain is not None else 2 if column.is_worst else 3), place

    return sorted(table.shown, key=rank)


def _counts_at(table: Table) -> int:
    """Where n and cfg stand: behind the worst test accuracy, where there is one."""
    return 1 if table.domains else 0


def header(text: str, first: str, **attributes: object) -> Markup:
    """A heading that sorts; `first`: the order of the first click."""
    return el("th", el("button", text, type="button"), scope="col", data_first=first, **attributes)


def _column(table: Table, place: int) -> Markup:
    column = table.columns[place]
    first = "ascending" if column.is_loss else "descending"
    kind = "num worst" if column.is_worst else "num"
    return header(table.heading(place), first, class_=kind)


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
    at = _counts_at(table)
    cells[at:at] = [*named, *counts]
    name = el("th", row.title, scope="row")
    return el("tr", name, *cells, class_="published" if row.published else None)
