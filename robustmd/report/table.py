"""The paper's table of one data set: methods as rows, the published rows beneath."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SPREAD, Estimate
from robustmd.report.names import clean, latex, markdown
from robustmd.report.numbers import estimate_text
from robustmd.report.published import SOURCE, published_rows
from robustmd.report.quantities import SELECTION, Quantity, table_quantities

NOT_PRINTED = "–"
MEASURE_NAMES = {"train_loss": "loss_tr", "train_accuracy": "acc_tr", "test_accuracy": "acc_te"}
LATEX_MEASURES = {
    "train_loss": r"Loss$_\mathrm{Tr}$",
    "train_accuracy": r"Acc$_\mathrm{Tr}$",
    "test_accuracy": r"Acc$_\mathrm{Te}$",
}


@dataclass(frozen=True)
class Row:
    """One method: an `Estimate` a column, or (published) the number as the paper prints it."""

    label: str
    seeds: tuple[int, ...]
    cells: tuple[Estimate | str | None, ...]
    published: bool = False

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
    def caption(self) -> str:
        """What the numbers are: for every format the same words."""
        several = any(len(row.seeds) > 1 for row in self.rows)
        spread = f"Mean ± {SPREAD}; rows with n = 1 have no ±. " if several else "n = 1: no ±. "
        text = (
            f"{self.data}: losses are mean cross entropy in nats, accuracies in percent. {spread}"
            f"Every value is of {SELECTION}; n counts seeds. Worst: the largest loss or lowest "
            "accuracy over the domains within each run, then averaged."
        )
        if any(row.published for row in self.rows):
            text += f" Published: as printed in {SOURCE} ({NOT_PRINTED}: not stated there)."
        return text


def build_table(section: Section) -> Table:
    """The table of one section: our groups, then the paper's rows where it has this data set."""
    columns = table_quantities(section.domains)
    rows = [
        Row(group.label, group.seeds, tuple(group.estimate(column) for column in columns))
        for group in section.groups
    ]
    for line in published_rows(section.data, section.domains):
        by_domain = [cell for name in section.domains for cell in line.by_domain[name.lower()]]
        label = f"{line.method} (published)"
        rows.append(Row(label, (), (*by_domain, *line.worst, None), published=True))
    return Table(section.data, section.domains, columns, tuple(rows))


def to_markdown(table: Table) -> str:
    """A pipe table under its caption."""
    head = ["method", "n", *(_heading(column) for column in table.columns)]
    lines = [
        f"{markdown(table.caption)}\n",
        "| " + " | ".join(markdown(text) for text in head) + " |",
        "|" + " --- |" + " ---: |" * (len(head) - 1),
    ]
    for row in table.rows:
        cells = [markdown(row.label), row.n, *_texts(row, table.columns, " ± ")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A `table` environment that needs booktabs alone."""
    width = len(table.domains)
    groups = "".join(
        rf" & \multicolumn{{3}}{{c}}{{{latex(name)}}}" for name in (*table.domains, "Worst")
    )
    rules = "".join(rf"\cmidrule(lr){{{3 * i + 3}-{3 * i + 5}}}" for i in range(width + 1))
    measures = "".join(f" & {LATEX_MEASURES[_measure(column)]}" for column in table.columns)
    body = [_latex_row(row, table.columns) for row in table.rows]
    ours = sum(not row.published for row in table.rows)
    if ours < len(body):
        body.insert(ours, r"\midrule")
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{latex(table.caption)}}}",
        rf"\begin{{tabular}}{{lr{'rrr' * (width + 1)}}}",
        r"\toprule",
        rf" & {groups} \\",
        rules,
        rf"Method & $n${measures} \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: Row, columns: Sequence[Quantity]) -> str:
    cells = _texts(row, columns, r" {\scriptsize$\pm$ ")
    closed = [cell + "}" if "pm" in cell else cell.replace(NOT_PRINTED, "--") for cell in cells]
    n = row.n.replace(NOT_PRINTED, "--")
    return " & ".join([latex(row.label), n, *closed]) + r" \\"


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


def _csv_pair(cell: Estimate | str | None) -> tuple[float | str, float | str]:
    if isinstance(cell, Estimate):
        return cell.mean, "" if cell.std is None else cell.std
    return cell or "", ""


def _texts(row: Row, columns: Sequence[Quantity], plus_minus: str) -> list[str]:
    return [
        estimate_text(cell, is_loss=column.is_loss, plus_minus=plus_minus)
        if isinstance(cell, Estimate)
        else cell or NOT_PRINTED
        for cell, column in zip(row.cells, columns, strict=True)
    ]


def _measure(column: Quantity) -> str:
    return f"{column.split}_{column.kind}"


def _heading(column: Quantity) -> str:
    where = "worst" if column.domain is None else column.domain
    return f"{where} {MEASURE_NAMES[_measure(column)]}"
