"""The paper's table of one data set: methods as rows, the published rows beneath."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD_WORDS, Estimate, SpreadKind
from robustmd.report.many import is_many, worst_domain_words
from robustmd.report.messages import messages
from robustmd.report.names import clean
from robustmd.report.numbers import estimate_text, estimate_texts
from robustmd.report.published import SOURCE, published_rows
from robustmd.report.quantities import (
    ADJUSTED_TEST_ACCURACY,
    Quantity,
    averaged,
    returns_average,
    table_quantities,
)
from robustmd.report.selection import DEFAULT, Selection
from robustmd.report.troubles import troubles
from robustmd.report.worst_domain import WorstDomain, worst_domain

NOT_PRINTED = "–"
WARNED = "†"
AVERAGED = "(averaged)"
UNSEEN = "(unseen)"
MEASURE_NAMES = {"train_loss": "loss_tr", "train_accuracy": "acc_tr", "test_accuracy": "acc_te"}
Cell = Estimate | str | None  # ours; published, as printed; published nowhere
Mark = Literal["best", "second", ""]


@dataclass(frozen=True)
class Row:
    """One method: an `Estimate` a column, or (published) the number as the paper prints it.

    `configurations`: how many of this method were run; `warnings`: what must be known of its runs,
    each once, with how many runs it holds for; `notes`: what they noted of their data and settings.
    `worst_domain` of many domains; None where all are shown.
    """

    label: str
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    published: bool = False
    configurations: int = 1
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    worst_domain: WorstDomain | None = None

    @property
    def title(self) -> str:
        """The label, and what must be known beside it."""
        mark = f" {WARNED}" if self.warnings else ""
        return f"{self.label}{' (published)' if self.published else ''}{mark}"

    @property
    def n(self) -> str:
        return NOT_PRINTED if self.published else str(len(self.seeds))

    @property
    def configured(self) -> str:
        return NOT_PRINTED if self.published else str(self.configurations)

    @property
    def worst_text(self) -> str:
        """ "svhn (2 of 3)"."""
        return NOT_PRINTED if self.worst_domain is None else self.worst_domain.text


@dataclass(frozen=True)
class Table:
    """Columns are the paper's: loss_tr, acc_tr, acc_te of each domain, then the worst ones; and the
    mean test accuracy, and the adjusted one where sizes differ. Of many domains those of each are
    not `shown`, but the worst tenth is. Last the test accuracy of `unseen` domains. `selection` and
    `spread` hold for every row."""

    data: str
    domains: tuple[str, ...]
    columns: tuple[Quantity, ...]
    rows: tuple[Row, ...]
    selection: Selection = Selection(DEFAULT)
    spread: SpreadKind = "std"
    subset: int | None = None  # fewest training examples a domain in a measurement that is used

    @property
    def unseen(self) -> tuple[str, ...]:
        """The domains kept out of training that have a column."""
        return tuple(c.domain for c in self.columns if c.unseen and c.domain is not None)

    @property
    def is_many(self) -> bool:
        """Whether domains are summarised, and the worst one is named."""
        return is_many(self.domains)

    @property
    def shown(self) -> tuple[int, ...]:
        """Places of the columns that a reader is shown; a CSV file has all."""
        many = {False: self.is_many, True: is_many(self.unseen)}
        return tuple(
            i for i, c in enumerate(self.columns) if c.domain is None or not many[c.unseen]
        )

    def where(self, place: int) -> str:
        """What a column is of, as `where`; beside unseen domains "worst trained"."""
        column = self.columns[place]
        is_apart = self.unseen and column.domain is None and not column.unseen
        return f"{where(column)} trained" if is_apart else where(column)

    def heading(self, place: int) -> str:
        """ "mnist loss_tr", "worst acc_te", "mean acc_te"."""
        return f"{self.where(place)} {MEASURE_NAMES[self.columns[place].measure]}"

    @property
    def warnings(self) -> list[str]:
        """ "opt λ=0.01: nearly all weight on svhn (3 of 5 runs)", for all rows."""
        return [f"{row.label}: {line}" for row in self.rows for line in row.warnings]

    @property
    def notes(self) -> list[str]:
        """What runs noted, each line once with the rows that it holds for."""
        rows: dict[str, list[str]] = {}
        for row in self.rows:
            for line in row.notes:
                rows.setdefault(line, []).append(row.label)
        return [f"{', '.join(labels)}: {line}" for line, labels in rows.items()]

    @property
    def caption(self) -> str:
        """What the numbers are: for every format the same words."""
        return caption(self)

    def marks(self, row: int, column: int) -> Mark:
        """Whether a worst-case value is the column's best or second of our rows: by the means as
        printed, so that equal numbers are marked alike."""
        cell = self.rows[row].cells[column]
        quantity = self.columns[column]
        if not quantity.is_worst or not isinstance(cell, Estimate):
            return ""
        ours = [one.cells[column] for one in self.rows]
        printed = {_printed(one, quantity) for one in ours if isinstance(one, Estimate)}
        ranked = sorted(printed, reverse=not quantity.is_loss)[:2]
        if len(printed) < 2 or _printed(cell, quantity) not in ranked:
            return ""
        return "best" if _printed(cell, quantity) == ranked[0] else "second"


def build_table(
    section: Section, selection: Selection | None = None, spread: SpreadKind = "std"
) -> Table:
    """The table of one section: our groups, then the paper's rows where it has this data set.

    `selection` is the rule that the section was made with: it is named in the caption.
    """
    columns = table_quantities(section.domains, section.runs)
    rows = [row for group in section.groups for row in _rows(group, columns)]
    for line in published_rows(section.data, section.domains):
        by_domain = [cell for name in section.domains for cell in line.by_domain[name.lower()]]
        cells = (*by_domain, *line.worst)
        unknown = (None,) * (len(columns) - len(cells))
        rows.append(Row(line.method, (), (*cells, *unknown), published=True))
    subsets = [one.subset for group in section.groups for one in group.selected]
    return Table(
        section.data,
        section.domains,
        columns,
        tuple(rows),
        selection or Selection(),
        spread,
        min((size for size in subsets if size is not None), default=None),
    )


def measured_as(
    group: Group, columns: Sequence[Quantity]
) -> list[tuple[str, tuple[Quantity, ...]]]:
    """(label, what stands in the columns): the last model, and the averaged one where it is."""
    rows = [(group.label, tuple(columns))]
    if all(returns_average(one) for one in group.selected):
        rows.append((f"{group.label} {AVERAGED}", tuple(averaged(column) for column in columns)))
    return rows


def _rows(group: Group, columns: Sequence[Quantity]) -> list[Row]:
    rows = [
        Row(
            label,
            group.seeds,
            tuple(group.estimate(quantity) for quantity in quantities),
            configurations=group.configurations,
            worst_domain=_worst_domain(group, quantities),
        )
        for label, quantities in measured_as(group, columns)
    ]
    warnings = (*messages(group.runs, "warnings"), *troubles(group))
    said = {"warnings": warnings, "notes": messages(group.runs, "notes")}
    return [dataclasses.replace(rows[0], **said), *rows[1:]]  # type: ignore[arg-type]


def _worst_domain(group: Group, quantities: Sequence[Quantity]) -> WorstDomain | None:
    """Of many domains, on the split of the last column: the test set."""
    many = is_many(group.runs[0].domains)
    return worst_domain(group, quantities[-1].split) if many else None


def caption(table: Table) -> str:
    """What the numbers are, how they were chosen, and what ± is."""
    text = (
        f"{table.data}: losses are mean cross entropy in nats, accuracies in percent. "
        f"{spread_words(table)} Every value is of {table.selection.words}, the same rule for every "
        "row; n counts seeds, cfg the configurations of the method that were run. Worst: the "
        "largest loss or lowest accuracy over the domains within each run, then averaged; the best "
        "is bold, the second underlined. Mean: uniform over the domains."
        f"{worst_domain_words(table.domains)}"
    )
    if ADJUSTED_TEST_ACCURACY in table.columns:
        text += (
            " Adjusted: the domains' test accuracies weighted by the sizes of their training sets."
        )
    if table.unseen:
        text += (
            f" {UNSEEN}: kept out of training; worst, mean and best-val's choice are over the "
            "domains that train, of an individual model over those that the mixtures train on."
        )
    if table.subset is not None:
        text += (
            " Training measurements before the last are of a fixed random part of the training set "
            f"(from {table.subset} examples a domain); test sets are always measured whole."
        )
    if any(row.label.endswith(AVERAGED) for row in table.rows):
        text += f" {AVERAGED}: the mean of all iterates' weights, in place of the last."
    if any(row.published for row in table.rows):
        text += f" Published: as printed in {SOURCE} ({NOT_PRINTED}: not stated there)."
    return text


def spread_words(table: Table) -> str:
    """What ± is."""
    if any(len(row.seeds) > 1 for row in table.rows):
        return f"Mean ± {SPREAD_WORDS[table.spread]}; rows with n = 1 have no ±."
    return "n = 1: no ±."


def cell_text(cell: Cell, column: Quantity, spread: SpreadKind = "std") -> str:
    """ "84.00 ± 5.29"; a published number as printed, an en dash where there is none."""
    if isinstance(cell, Estimate):
        return estimate_text(cell, is_loss=column.is_loss, spread=spread)
    return cell or NOT_PRINTED


def heading(column: Quantity) -> str:
    """As `Table.heading`, of a column by itself."""
    return f"{where(column)} {MEASURE_NAMES[column.measure]}"


def where(column: Quantity) -> str:
    """ "mnist", "worst", "mean", "sketch (unseen)"."""
    name = column.over if column.domain is None else column.domain
    return clean(f"{name} {UNSEEN}" if column.unseen else name)


def _printed(cell: Estimate, column: Quantity) -> float:
    return float(estimate_texts(cell, is_loss=column.is_loss)[0])
