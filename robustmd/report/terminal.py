"""The report's summary in a terminal, or as plain text where the output goes elsewhere."""

import io
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.report import curves
from robustmd.report.names import clean
from robustmd.report.page import LEFT_OUT, relative, sentence
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS, Quantity
from robustmd.report.regret import alarms, regret_cells
from robustmd.report.report import ReportResult, SectionReport
from robustmd.report.table import WARNED, Row, cell_text

COLOUR_OF_WORD = {"better": "green", "worse": "red", "undecided": "yellow"}
SHOWN_PROBLEMS = 20
ANY_WIDTH = 10_000


def show(result: ReportResult, stream: TextIO) -> None:
    """Prints tables, warnings, paired differences, regrets, what was left out and where the files
    lie; with colours only where `stream` is a terminal."""
    console = Console(file=stream, highlight=False)
    tables = [_table(one) for one in result.sections]
    # Never narrower than the numbers: a terminal may fold a line, but none is cut.
    measure = Console(width=ANY_WIDTH)
    console.width = max(console.width, *(measure.measure(table).maximum for table in tables))
    for one, table in zip(result.sections, tables, strict=True):
        name, domains = one.section.data, ", ".join(one.section.domains)
        _line(console, Text(clean(f"{name}: {domains}"), style="bold"))
        console.print(table)
        _line(console, Text(_legend(one), style="dim"))
        _warnings(console, one)
        _differences(console, one)
        _regrets(console, one)
    _problems(console, result)
    _line(console, Text(f"Page:  {result.page}"))
    for one in result.sections:
        _line(console, Text(f"Curve: {result.out / one.section.folder / curves.NAME}.png"))


def summary_text(result: ReportResult) -> str:
    """The same as plain text."""
    out = io.StringIO()
    show(result, out)
    return out.getvalue()


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _columns(one: SectionReport) -> dict[str, Quantity]:
    by_domain = {
        clean(f"{domain} test"): Quantity("accuracy", "test", domain)
        for domain in one.section.domains
    }
    return by_domain | {"WORST test": WORST_TEST_ACCURACY, "worst train loss": WORST_TRAIN_LOSS}


def _table(one: SectionReport) -> RichTable:
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("method")
    table.add_column("n", justify="right")
    columns = _columns(one)
    for heading, quantity in columns.items():
        bold = "bold" if quantity.domain is None else None
        table.add_column(Text(heading), justify="right", style=bold)
    for row in one.table.rows:
        numbers = [_cell(row, one, quantity) for quantity in columns.values()]
        style = "dim" if row.published else None
        table.add_row(Text(row.title), row.n, *numbers, style=style)
    return table


def _cell(row: Row, one: SectionReport, quantity: Quantity) -> str:
    return cell_text(row.cells[one.table.columns.index(quantity)], quantity)


def _legend(one: SectionReport) -> str:
    several = any(len(group.runs) > 1 for group in one.section.groups)
    spread = "mean ± standard deviation over n seeds; " if several else ""
    return (
        f"accuracies in percent, losses in nats; {spread}WORST: within each run, then averaged; "
        "final measurement, all examples\n"
    )


def _differences(console: Console, one: SectionReport) -> None:
    if not one.comparisons:
        return
    _line(console, Text("Paired differences by seed, with 95 % t intervals", style="bold"))
    for comparison in one.comparisons:
        said = clean(sentence(comparison)).removesuffix(comparison.word)
        _line(console, Text(said).append(comparison.word, COLOUR_OF_WORD[comparison.word]))
    console.print()


def _warnings(console: Console, one: SectionReport) -> None:
    for warning in one.table.warnings:
        _line(console, Text(f"{WARNED} {clean(warning)}", style="yellow"))
    if one.table.warnings:
        console.print()


def _regrets(console: Console, one: SectionReport) -> None:
    """One line a row, and every broken bound."""
    if not one.regrets:
        return
    _line(console, Text("Measured regret per update [nats] and its proved bound", style="bold"))
    for row in one.regrets:
        n, measured, bound, holds = regret_cells(row)
        known = "no bound is proved" if row.bound is None else f"bound {bound}, holds: {holds}"
        _line(console, Text(clean(f"{row.label}: {measured}, {known} (n = {n})")))
    for alarm in alarms(one.regrets):
        _line(console, Text(clean(alarm), style="bold red"))
    console.print()


def _problems(console: Console, result: ReportResult) -> None:
    if not result.problems:
        return
    _line(console, Text(f"Left out or remarked on: {len(result.problems)}", style="bold"))
    for problem in result.problems[:SHOWN_PROBLEMS]:
        path = relative(problem.path, result.outputs)
        text = f"{path}: {LEFT_OUT[problem.scope]}: {problem.reason}"
        _line(console, Text(clean(text)))
    more = len(result.problems) - SHOWN_PROBLEMS
    if more > 0:
        _line(console, Text(f"and {more} more: see the page"))
    console.print()
