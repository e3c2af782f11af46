"""The paper's table of one data set: methods as rows, the published rows beneath."""

import csv
import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD, Estimate
from robustmd.report.messages import messages
from robustmd.report.names import clean, markdown
from robustmd.report.numbers import estimate_text
from robustmd.report.published import SOURCE, published_rows
from robustmd.report.quantities import (
    SELECTION,
    Quantity,
    averaged,
    returns_average,
    table_quantities,
)

NOT_PRINTED = "–"
WARNED = "†"
AVERAGED = "(averaged)"
Cell = Estimate | str | None  # ours; published, as printed; published nowhere
MEASURE_NAMES = {"train_loss": "loss_tr", "train_accuracy": "acc_tr", "test_accuracy": "acc_te"}


@dataclass(frozen=True)
class Row:
    """One method: an `Estimate` a column, or (published) the number as the paper prints it.

    `warnings`: what its runs warned of, each once, with how many of them did.
    """

    label: str
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    published: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The label, and what must be known beside it."""
        mark = f" {WARNED}" if self.warnings else ""
        return f"{self.label}{' (published)' if self.published else ''}{mark}"

    @property
    def n(self) -> str:
        return NOT_PRINTED if self.published else str(len(self.seeds))


@dataclass(frozen=True)
class Table:
    """Columns are the paper's: loss_tr, acc_tr, acc_te of each domain, then the worst ones."""

    data: str
    domains: tuple[str, ...]
    columns: tuple[Quantity, ...]
    rows: tuple[Row, ...]

    @property
    def warnings(self) -> list[str]:
        """ "opt λ=0.01: nearly all weight on svhn (3 of 5 runs)", for all rows."""
        return [f"{row.label}: {line}" for row in self.rows for line in row.warnings]

    @property
    def caption(self) -> str:
        """What the numbers are: for every format the same words."""
        several = any(len(row.seeds) > 1 for row in self.rows)
        spread = f"Mean ± {SPREAD}; rows with n = 1 have no ±. " if several else "n = 1: no ±. "
        text = (
            f"{self.data}: losses are mean cross entropy in nats, accuracies in percent. {spread}"
            f"Every value is of {SELECTION}; n counts seeds. Worst: the largest loss or lowest "
            "accuracy over the domains within each run, then averaged."
        )
        if any(row.label.endswith(AVERAGED) for row in self.rows):
            text += f" {AVERAGED}: the mean of all iterates' weights, in place of the last."
        if any(row.published for row in self.rows):
            text += f" Published: as printed in {SOURCE} ({NOT_PRINTED}: not stated there)."
        return text


def build_table(section: Section) -> Table:
    """The table of one section: our groups, then the paper's rows where it has this data set."""
    columns = table_quantities(section.domains)
    rows = [row for group in section.groups for row in _rows(group, columns)]
    for line in published_rows(section.data, section.domains):
        by_domain = [cell for name in section.domains for cell in line.by_domain[name.lower()]]
        rows.append(Row(line.method, (), (*by_domain, *line.worst, None), published=True))
    return Table(section.data, section.domains, columns, tuple(rows))


def measured_as(
    group: Group, columns: Sequence[Quantity]
) -> list[tuple[str, tuple[Quantity, ...]]]:
    """(label, what stands in the columns): the last model, and the averaged one where it is."""
    rows = [(group.label, tuple(columns))]
    if all(returns_average(run) for run in group.runs):
        rows.append((f"{group.label} {AVERAGED}", tuple(averaged(column) for column in columns)))
    return rows


def _rows(group: Group, columns: Sequence[Quantity]) -> list[Row]:
    warnings = messages(group.runs, "warnings")
    rows = [
        Row(label, group.seeds, tuple(group.estimate(quantity) for quantity in quantities))
        for label, quantities in measured_as(group, columns)
    ]
    return [dataclasses.replace(rows[0], warnings=warnings), *rows[1:]]


def to_markdown(table: Table) -> str:
    """A pipe table under its caption; what runs warned of below it."""
    head = ["method", "n", *(_heading(column) for column in table.columns)]
    lines = [
        f"{markdown(table.caption)}\n",
        "| " + " | ".join(markdown(text) for text in head) + " |",
        "|" + " --- |" + " ---: |" * (len(head) - 1),
    ]
    for row in table.rows:
        texts = (cell_text(*pair) for pair in zip(row.cells, table.columns, strict=True))
        cells = [markdown(row.title), row.n, *texts]
        lines.append("| " + " | ".join(cells) + " |")
    if table.warnings:
        lines += [f"\n{WARNED} Warnings:\n", *(f"- {markdown(line)}" for line in table.warnings)]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """One line a row, with every digit: <column>_mean and <column>_std. Published numbers stand
    in the mean's column, as printed; an empty field is a number that does not exist."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    spread = [f"{clean(c.name)}_{part}" for c in table.columns for part in ("mean", "std")]
    writer.writerow(["method", "source", "n", "seeds", *spread])
    for row in table.rows:
        source = SOURCE if row.published else "this report"
        n = "" if row.published else len(row.seeds)
        numbers = [number for cell in row.cells for number in _csv_pair(cell)]
        writer.writerow([row.label, source, n, " ".join(map(str, row.seeds)), *numbers])
    return out.getvalue()


def _csv_pair(cell: Cell) -> tuple[float | str, float | str]:
    if isinstance(cell, Estimate):
        return cell.mean, "" if cell.std is None else cell.std
    return cell or "", ""


def cell_text(cell: Cell, column: Quantity) -> str:
    """ "84.00 ± 5.29"; a published number as printed, an en dash where there is none."""
    if isinstance(cell, Estimate):
        return estimate_text(cell, is_loss=column.is_loss)
    return cell or NOT_PRINTED


def _heading(column: Quantity) -> str:
    where = "worst" if column.domain is None else column.domain
    return f"{where} {MEASURE_NAMES[column.measure]}"
