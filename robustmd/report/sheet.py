"""A table as data: what stands in it, before there is a format. `renderers` makes the formats."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["text", "number", "long", "code"]
Mark = Literal["", "best", "second", "broken", "better", "worse", "equivalent", "undecided"]
VERDICTS = ("better", "equivalent", "undecided", "worse")
NOTHING = "–"  # where there is no number
WARNED = "†"


@dataclass(frozen=True)
class Cell:
    """`text` is what a reader is shown, with what stands `beside` it: behind ± in a column of
    numbers. `values` are what a CSV file has, with every digit, one for each of the column's
    `names`; None is an empty field. `links`: (text, path) of files that a page leads to."""

    text: str = ""
    values: tuple[object, ...] = ()
    beside: str = ""
    mark: Mark = ""
    links: tuple[tuple[str, str], ...] = ()

    def whole(self, between: str = " ± ") -> str:
        """ "84.00 ± 5.29"."""
        return between.join(filter(None, (self.text, self.beside)))


@dataclass(frozen=True)
class Column:
    """`title` stands above what is shown; None: only a CSV file has the column, under `names`. No
    names: a CSV file has it not.

    `kind`: text; a number, aligned right; long text, which is folded; or code. Where columns have a
    `group`, LaTeX shows it above those of it, and `measure` above each. `first`: how the first
    click on the heading sorts. `is_worst`: what the whole is about, set apart by its background.
    """

    title: str | None
    names: tuple[str, ...] = ()
    kind: Kind = "text"
    group: str = ""
    measure: str = ""
    first: Literal["ascending", "descending"] = "ascending"
    is_worst: bool = False


@dataclass(frozen=True)
class Row:
    """The first cell names it. `published`: printed elsewhere; `warned`: see the warnings."""

    cells: tuple[Cell, ...]
    published: bool = False
    warned: bool = False


@dataclass(frozen=True)
class Sheet:
    """`name` says what it is where there is no room for a `caption`. `alarms` stand above all else,
    `warnings` and `notes` below. `letters`: their size in LaTeX."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    alarms: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    letters: str = "scriptsize"

    @property
    def shown(self) -> tuple[int, ...]:
        """Places of the columns that a reader is shown."""
        return tuple(i for i, column in enumerate(self.columns) if column.title is not None)

    @property
    def head(self) -> list[Column]:
        """The columns that a reader is shown."""
        return [self.columns[place] for place in self.shown]

    @property
    def body(self) -> list[tuple[Row, list[tuple[Column, Cell, str]]]]:
        """Each row, and what a reader is shown of it: (column, cell, text). Its name says what must
        be known beside it."""
        found = []
        for row in self.rows:
            cells = [
                (column, row.cells[i]) for i, column in zip(self.shown, self.head, strict=True)
            ]
            texts = [
                cell.whole(" ± " if column.kind == "number" else " ") for column, cell in cells
            ]
            texts[0] += " (published)" * row.published + f" {WARNED}" * row.warned
            line = [(*both, text) for both, text in zip(cells, texts, strict=True)]
            found.append((row, line))
        return found

    def arranged(self, names: Iterable[str]) -> "Sheet":
        """The columns of these names in a CSV file, in this order."""
        places = {column.names[0]: i for i, column in enumerate(self.columns) if column.names}
        order = [places[name] for name in names]
        columns = tuple(self.columns[place] for place in order)
        rows = (replace(row, cells=tuple(row.cells[i] for i in order)) for row in self.rows)
        return replace(self, columns=columns, rows=tuple(rows))


Field = tuple[Column, Callable[[Any], Cell]]


def field(
    title: str | None, of: Callable[[Any], object], *names: str, kind: Kind = "text", **look: Any
) -> Field:
    """A `Column`, whose other fields are in `look`, and what stands in it `of` each item: a `Cell`,
    or one value as it is."""

    def cell(item: Any) -> Cell:
        found = of(item)
        if isinstance(found, Cell):
            return found
        return Cell(NOTHING if found is None else str(found), (found,) if names else ())

    return Column(title, names, kind, **look), cell


def make_sheet(name: str, items: Iterable[Any], fields: Sequence[Field], **rest: Any) -> Sheet:
    """One row for each item; `rest` is `Sheet`'s."""
    columns = tuple(column for column, _ in fields)
    rows = (Row(tuple(cell(item) for _, cell in fields)) for item in items)
    return Sheet(name, columns, tuple(rows), **rest)


def csv_sheet(name: str, rows: Iterable[Mapping[str, object]]) -> Sheet:
    """For a CSV file alone: each row gives its values by the columns' names, the same in all."""
    lines = list(rows)
    columns = tuple(Column(None, (key,)) for key in (lines[0] if lines else ()))
    cells = (tuple(Cell(values=(value,)) for value in line.values()) for line in lines)
    return Sheet(name, columns, tuple(map(Row, cells)))
