"""The report's summary in a terminal, or as plain text where the output goes elsewhere."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.console import make_console
from robustmd.report.compare import TreeComparison
from robustmd.report.compare_page import compare_lines
from robustmd.report.estimate import SPREAD_WORDS
from robustmd.report.fair_formats import chosen_text
from robustmd.report.many import domains_text
from robustmd.report.names import clean
from robustmd.report.page import LEFT_OUT, relative, sentence
from robustmd.report.quantities import (
    ADJUSTED_TEST_ACCURACY,
    MEAN_TEST_ACCURACY,
    WORST_TENTH_TEST_ACCURACY,
    WORST_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
    Quantity,
)
from robustmd.report.regret import alarms, regret_cells
from robustmd.report.report import Written
from robustmd.report.result import SectionReport
from robustmd.report.table import UNSEEN, WARNED, Table, cell_text, where

COLOUR_OF_WORD = {"better": "green", "worse": "red", "equivalent": "cyan", "undecided": "yellow"}
SHOWN_PROBLEMS = 20
MANY = (
    "; worst tenth: the mean over the worst 10 % of the domains; worst domain: lowest test "
    "accuracy in most runs, and in how many; each domain's numbers: domains.csv"
)
APART = f"; {UNSEEN}: kept out of training, and in no other column"
ANY_WIDTH = 10_000
STYLE_OF_MARK = {"best": "bold", "second": "underline", "": ""}


def show(result: Written, stream: TextIO) -> None:
    """Prints tables, warnings, paired differences, regrets, what was left out and where the files
    lie; with colours only where `stream` is a terminal."""
    console = make_console(stream)
    tables = [_table(one.table) for one in result.sections]
    apart = [_table(table) for table in result.report.leave_one_out]
    # Never narrower than the numbers: a terminal may fold a line, but none is cut.
    measure = Console(width=ANY_WIDTH)
    widths = [measure.measure(table).maximum for table in (*apart, *tables)]
    console.width = max(console.width, *widths)
    for kept_out, table in zip(result.report.leave_one_out, apart, strict=True):
        _line(console, Text(clean(f"{kept_out.data}: leave one domain out"), style="bold"))
        console.print(table)
        _line(console, Text(f"{clean(kept_out.caption)}\n", style="dim"))
    for one, table in zip(result.sections, tables, strict=True):
        name, domains = one.section.data, domains_text(one.section.domains)
        _line(console, Text(clean(f"{name}: {domains}"), style="bold"))
        console.print(table)
        _line(console, Text(_legend(one), style="dim"))
        _warnings(console, one)
        _differences(console, one)
        _fair(console, one)
        _regrets(console, one)
        _missing(console, one)
    _problems(console, result)
    _line(console, Text(f"Page: {result.html}"))
    _line(console, Text(f"Text: {result.page}"))


def show_comparison(found: TreeComparison, files: Sequence[Path], stream: TextIO) -> None:
    """Prints what `--compare` found, and where its files lie."""
    console = make_console(stream)
    for line in (*compare_lines(found), *(f"Page: {path}" for path in files[:1])):
        _line(console, Text(clean(line)))


def summary_text(result: Written) -> str:
    """The same as plain text."""
    out = io.StringIO()
    show(result, out)
    return out.getvalue()


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _columns(table: Table) -> dict[str, Quantity]:
    columns = [table.columns[place] for place in table.shown]
    unseen = {f"{where(column)} test": column for column in columns if column.unseen}
    if not table.domains:
        return unseen
    sized = ADJUSTED_TEST_ACCURACY in table.columns
    adjusted = {"adjusted test": ADJUSTED_TEST_ACCURACY} if sized else {}
    if table.is_many:
        return {
            "WORST test": WORST_TEST_ACCURACY,
            **unseen,
            "worst tenth test": WORST_TENTH_TEST_ACCURACY,
            "mean test": MEAN_TEST_ACCURACY,
            **adjusted,
            "worst train loss": WORST_TRAIN_LOSS,
        }
    by_domain = {
        clean(f"{domain} test"): Quantity("accuracy", "test", domain) for domain in table.domains
    }
    return by_domain | {
        "WORST test": WORST_TEST_ACCURACY,
        **unseen,
        "worst train loss": WORST_TRAIN_LOSS,
        "mean test": MEAN_TEST_ACCURACY,
        **adjusted,
    }


def _table(table: Table) -> RichTable:
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("method")
    shown.add_column("n", justify="right")
    shown.add_column("cfg", justify="right")
    columns = _columns(table)
    for heading in columns:
        shown.add_column(Text(heading), justify="right")
    if table.is_many:
        shown.add_column("worst domain")
    for i, row in enumerate(table.rows):
        numbers = [_cell(table, i, quantity) for quantity in columns.values()]
        style = "dim" if row.published else None
        named = [Text(row.worst_text)] if table.is_many else []
        shown.add_row(Text(row.title), row.n, row.configured, *numbers, *named, style=style)
    return shown


def _cell(table: Table, row: int, quantity: Quantity) -> Text:
    column = table.columns.index(quantity)
    text = cell_text(table.rows[row].cells[column], quantity, table.spread)
    return Text(text, style=STYLE_OF_MARK[table.marks(row, column)])


def _legend(one: SectionReport) -> str:
    table = one.table
    several = any(len(group.runs) > 1 for group in one.section.groups)
    spread = f"mean ± {SPREAD_WORDS[table.spread]}; " if several else ""
    return (
        f"accuracies in percent, losses in nats; {spread}WORST: within each run, then averaged, "
        "best bold, second underlined; mean: uniform over domains; cfg: configurations run; every "
        f"value is of {table.selection.words}{MANY if table.is_many else ''}"
        f"{APART if table.unseen else ''}\n"
    )


def _differences(console: Console, one: SectionReport) -> None:
    if not one.comparisons:
        return
    _line(console, Text("Paired differences by seed, with 95 % t intervals", style="bold"))
    for comparison in one.comparisons:
        said = clean(sentence(comparison)).removesuffix(comparison.said)
        _line(console, Text(said).append(comparison.said, COLOUR_OF_WORD[comparison.word]))
    console.print()


def _fair(console: Console, one: SectionReport) -> None:
    """The fair protocol's differences, and the static front's answer."""
    if one.fair is not None:
        _line(console, Text("The fair protocol: tuned on validation, seed by seed", style="bold"))
        for tuned in one.fair.methods:
            budget = f"{tuned.configurations} configurations, {tuned.runs} runs"
            _line(console, Text(clean(f"{tuned.label}: {budget}; {chosen_text(tuned)}")))
        for comparison in one.fair.comparisons:
            said = clean(sentence(comparison)).removesuffix(comparison.said)
            _line(console, Text(said).append(comparison.said, COLOUR_OF_WORD[comparison.word]))
        console.print()
    if one.front is not None:
        _line(console, Text(clean(one.front.answer)))
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


def _missing(console: Console, one: SectionReport) -> None:
    """What would run the seeds that are not there."""
    if not one.missing:
        return
    _line(console, Text("Missing, and the command that would run it", style="bold"))
    for gap in one.missing[:SHOWN_PROBLEMS]:
        seeds = ", ".join(map(str, gap.seeds))
        _line(console, Text(clean(f"{gap.label}, seed {seeds}: {gap.command}")))
    console.print()


def _problems(console: Console, result: Written) -> None:
    if not result.problems:
        return
    _line(console, Text(f"Left out or remarked on: {len(result.problems)}", style="bold"))
    for problem in result.problems[:SHOWN_PROBLEMS]:
        path = relative(problem.path, result.report.outputs)
        text = f"{path}: {LEFT_OUT[problem.scope]}: {problem.reason}"
        _line(console, Text(clean(text)))
    more = len(result.problems) - SHOWN_PROBLEMS
    if more > 0:
        _line(console, Text(f"and {more} more: see the page"))
    console.print()
