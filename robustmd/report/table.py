"""The paper's table of one data set: methods as rows, the published rows beneath."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from robustmd.metrics import tenth
from robustmd.report.aggregate import AVERAGED_WORD, Group, Section, measured_as
from robustmd.report.estimate import SPREAD_WORDS, Estimate, estimate_cell, value_text
from robustmd.report.missing import Kind, messages, other_warnings
from robustmd.report.names import is_many
from robustmd.report.published import SOURCE, published_rows
from robustmd.report.quantities import UNSEEN, Quantity, table_quantities
from robustmd.report.sheet import NOTHING, Cell, Field, Mark, Sheet, field, make_sheet

Value = Estimate | str | None  # ours; published, as printed; published nowhere
NO_DOMAIN = Cell(NOTHING, (None, None))
LETTERS = {1: "footnotesize", 2: "footnotesize", 3: "scriptsize"}  # by domains, of more tiny


@dataclass(frozen=True)
class Row:
    """One method: an `Estimate` a column, or (published) the number as the paper prints it.

    `configurations`: how many of this method were run; `warnings`: what must be known of its runs,
    each once, with how many runs it holds for; `notes`: what they noted of their data and settings.
    `worst_domain` is named where domains are many.
    """

    label: str
    seeds: tuple[int, ...]
    cells: tuple[Value, ...]
    published: bool = False
    configurations: int | None = 1
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    worst_domain: Cell = NO_DOMAIN


@dataclass(frozen=True)
class Table:
    """Columns are `table_quantities`: of many domains those of each are not shown; `about` is said
    before all else."""

    section: Section
    columns: tuple[Quantity, ...]
    rows: tuple[Row, ...]
    about: str = ""

    @property
    def unseen(self) -> tuple[str, ...]:
        """The domains kept out of training that have a column."""
        return tuple(c.domain for c in self.columns if c.unseen and c.domain is not None)

    @property
    def is_many(self) -> bool:
        """Whether domains are summarised, and the worst one is named."""
        return is_many(self.section.domains)

    def is_shown(self, column: Quantity) -> bool:
        """Whether a reader is shown the column; a CSV file has all."""
        return column.domain is None or not is_many(
            self.unseen if column.unseen else self.section.domains
        )

    def _said(self, kind: Kind) -> tuple[str, ...]:
        """ "opt λ=0.01, kl: nearly all weight on svhn (3 of 5 runs)": each line once."""
        rows: dict[str, list[str]] = defaultdict(list)
        for row in self.rows:
            for line in getattr(row, kind):
                rows[line].append(row.label)
        return tuple(f"{', '.join(labels)}: {line}" for line, labels in rows.items())

    @property
    def caption(self) -> str:
        """What the numbers are: for every format the same words."""
        return self.about + " ".join(_caption(self))

    @property
    def sheet(self) -> Sheet:
        """All columns; of what a reader is shown the domains, the worst case and the mean."""
        sheet = make_sheet(
            f"results of {self.section.data}",
            self.rows,
            _fields(self),
            caption=self.caption,
            warnings=self._said("warnings"),
            notes=self._said("notes"),
            letters=LETTERS.get(len(self.section.domains) or 1, "tiny"),
        )
        rows = (
            replace(line, published=row.published, warned=bool(row.warnings))
            for line, row in zip(sheet.rows, self.rows, strict=True)
        )
        return replace(sheet, rows=tuple(rows))

    @property
    def worst_first(self) -> Sheet:
        """For a page: the test accuracies, of the worst domain (of many with its name), those kept
        out, each and the mean; n and cfg; then what is of the training sets, the worst first."""

        def rank(column: Quantity) -> tuple[bool, int]:
            of_all = 2 if column.domain is None else 1
            first = column.is_worst_test or (column.split == "train" and column.is_worst)
            return column.split == "train", -1 if first else 0 if column.unseen else of_all

        shown = sorted(filter(self.is_shown, self.columns), key=rank)
        tested = [f"{c.name}_mean" for c in shown if c.split == "test"]
        trained = [f"{c.name}_mean" for c in shown if c.split == "train"]
        worst = ["worst_domain"] * self.is_many
        order = ["method", *tested[:1], *worst, *tested[1:], "n", "configurations", *trained]
        return self.sheet.arranged(order)


def build_table(section: Section, about: str = "") -> Table:
    """The table of one section: our groups, then the paper's rows where it has this data set; with
    something to say `about` it our last models alone."""
    columns = table_quantities(section.domains, section.runs)
    of_groups = [_rows(group, columns) for group in section.groups]
    rows = [row for found in of_groups for row in found[: 1 if about else None]]
    for method, printed in () if about else published_rows(section.data, section.domains):
        unknown = (None,) * (len(columns) - len(printed))
        rows.append(Row(method, (), (*printed, *unknown), published=True, configurations=None))
    return Table(section, columns, tuple(rows), about)


def _rows(group: Group, columns: tuple[Quantity, ...]) -> list[Row]:
    many = is_many(group.runs[0].domains)
    rows = [
        Row(
            label,
            group.seeds,
            tuple(map(group.estimate, quantities)),
            configurations=group.configurations,
            worst_domain=_worst_domain(group, quantities) if many else NO_DOMAIN,
        )
        for label, quantities in measured_as(group, columns)
    ]
    warnings = (*messages(group.runs, "warnings"), *other_warnings(group), *group.said)
    rows[0] = replace(rows[0], warnings=warnings, notes=messages(group.runs, "notes"))
    return rows


def _worst_domain(group: Group, quantities: Sequence[Quantity]) -> Cell:
    """The domain that is the worst in most of the group's runs, of equals the first seed's:
    "rotate_90_sigma_76", beside it "(2 of 3)"; the name alone where there is one run."""
    split = quantities[-1].split  # of the last column: the test set
    counts = Counter(one.worst_domain(split) for one in group.selected)
    (name, runs), *_ = counts.most_common(1)
    of = len(group.selected)
    return Cell(name, (name, runs), "" if of == 1 else f"({runs} of {of})")


def _fields(table: Table) -> list[Field]:
    """In the order of table.csv."""
    names, rule = ("worst_domain", "worst_in"), table.section.selection
    worst = field("worst domain", lambda row: row.worst_domain, *names, group="Worst domain")
    return [
        field("method", lambda row: row.label, "method"),
        field(None, lambda row: SOURCE if row.published else "this report", "source"),
        field("n", lambda row: len(row.seeds) or None, "n", kind="number", first="descending"),
        field("cfg", lambda row: row.configurations, "configurations", kind="number"),
        field(None, lambda row: " ".join(map(str, row.seeds)), "seeds"),
        field(None, lambda row: None if row.published else rule.name, "selection"),
        *(_number(table, place) for place in range(len(table.columns))),
        *([worst] if table.is_many else []),
    ]


def _number(table: Table, place: int) -> Field:
    """<column>_mean and <column>_<kind of spread> in a CSV file, where published numbers stand in
    the mean's column, as printed."""
    column = table.columns[place]
    marks = _marks(column, [row.cells[place] for row in table.rows])

    def cell(row: Row) -> Cell:
        value = row.cells[place]
        if not isinstance(value, Estimate):
            return Cell(value or NOTHING, (value, None))
        mark = marks.get(_printed(column, value), "")
        return estimate_cell(value, column.metric, table.section.spread, mark)

    is_apart = table.unseen and column.domain is None and not column.unseen
    where = f"{column.where} trained" if is_apart else column.where
    return field(
        f"{where} {column.short}" if table.is_shown(column) else None,
        cell,
        f"{column.name}_mean",
        f"{column.name}_{table.section.spread}",
        kind="number",
        group=where.capitalize() if column.domain is None else where,
        measure=column.short,
        first="ascending" if column.metric.better == "smaller" else "descending",
        is_worst=column.is_worst,
    )


def _marks(column: Quantity, values: Sequence[Value]) -> dict[float, Mark]:
    """The best and the second of our rows in a worst-case column: by the means as printed, so that
    equal numbers are marked alike."""
    printed = {_printed(column, value) for value in values if isinstance(value, Estimate)}
    if not column.is_worst or len(printed) < 2:
        return {}
    best, second, *_ = sorted(printed, reverse=column.metric.better == "larger")
    return {best: "best", second: "second"}


def _printed(column: Quantity, value: Estimate) -> float:
    return float(value_text(column.metric, value.mean))


def _caption(table: Table) -> Iterator[str]:
    """What the numbers are, how they were chosen, and what ± is."""
    section, loss = table.section, table.section.loss
    are_numbers = loss.targets == "numbers"
    accuracies = "" if are_numbers else ", accuracies in percent"
    worst = "largest loss" if are_numbers else "largest loss or lowest accuracy"
    worst_test = "largest test loss" if are_numbers else "lowest test accuracy"
    yield (
        f"{section.data}: losses are {loss.words}{loss.in_unit}{accuracies}. "
        f"{spread_words(table)} Every value is of {section.selection.words}, the same rule for "
        "every row; n counts seeds, cfg the configurations of the method that were run. Worst: the "
        f"{worst} over the domains within each run, then averaged; the best "
        "is bold, the second underlined. Mean: uniform over the domains."
    )
    if table.is_many:
        count = len(section.domains)
        yield (
            f"Of {count:,} domains the worst tenth is the mean over the {tenth(count):,} "
            f"with the {worst}, within each measurement as the worst is. "
            f"Worst domain: the one with the {worst_test} in most runs, and in how many. "
            "Each domain's numbers are in domains.csv."
        )
    if any(column.over == "adjusted" for column in table.columns):
        what = "losses" if are_numbers else "accuracies"
        yield f"Adjusted: the domains' test {what} weighted by the sizes of their training sets."
    if table.unseen:
        yield (
            f"{UNSEEN}: kept out of training; worst, mean and best-val's choice are over the "
            "domains that train, of an individual model over those that the mixtures train on."
        )
    subsets = [one.subset for group in section.groups for one in group.selected if one.subset]
    if subsets:
        yield (
            "Training measurements before the last are of a fixed random part of the training set "
            f"(from {min(subsets)} examples a domain); test sets are always measured whole."
        )
    if any(row.label.endswith(AVERAGED_WORD) for row in table.rows):
        yield f"{AVERAGED_WORD}: the mean of all iterates' weights, in place of the last."
    if any(row.published for row in table.rows):
        yield f"Published: as printed in {SOURCE} ({NOTHING}: not stated there)."


def spread_words(table: Table) -> str:
    """What ± is."""
    if any(len(row.seeds) > 1 for row in table.rows):
        return f"Mean ± {SPREAD_WORDS[table.section.spread]}; rows with n = 1 have no ±."
    return "n = 1: no ±."
