"""The report's summary in a terminal, or as plain text where the output goes elsewhere."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.console import make_console
from robustmd.report.compare import TreeComparison
from robustmd.report.compare_page import compare_lines
from robustmd.report.content import LEFT_OUT, SectionReport, relative
from robustmd.report.estimate import SPREAD_WORDS
from robustmd.report.fair import chosen_text
from robustmd.report.names import clean, domains_text
from robustmd.report.paired import Comparison
from robustmd.report.quantities import (
    ADJUSTED_TEST_ACCURACY,
    MEAN_TEST_ACCURACY,
    UNSEEN,
    WORST_TENTH_TEST_ACCURACY,
    WORST_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
    Quantity,
)
from robustmd.report.regret import alarms, bound_cell, measured_cell
from robustmd.report.renderers import to_terminal
from robustmd.report.report import Written
from robustmd.report.sheet import WARNED
from robustmd.report.table import Table

COLOUR_OF_WORD = {"better": "green", "worse": "red", "equivalent": "cyan", "undecided": "yellow"}
SHOWN_PROBLEMS = 20
MANY = (
    "; worst tenth: the mean over the worst 10 % of the domains; worst domain: lowest test "
    "accuracy in most runs, and in how many; each domain's numbers: domains.csv"
)
APART = f"; {UNSEEN}: kept out of training, and in no other column"
ANY_WIDTH = 10_000


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


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _table(table: Table) -> RichTable:
    """Accuracies on the test sets and the worst training loss."""
    shown = filter(table.is_shown, table.columns)
    unseen = {column: f"{column.where} test" for column in shown if column.unseen}
    worst, loss = {WORST_TEST_ACCURACY: "WORST test"}, {WORST_TRAIN_LOSS: "worst train loss"}
    means = {MEAN_TEST_ACCURACY: "mean test"}
    if ADJUSTED_TEST_ACCURACY in table.columns:
        means[ADJUSTED_TEST_ACCURACY] = "adjusted test"
    if not table.domains:
        columns = unseen
    elif table.is_many:
        tenth = {WORST_TENTH_TEST_ACCURACY: "worst tenth test"}
        columns = worst | unseen | tenth | means | loss
    else:
        each = {Quantity("accuracy", "test", name): f"{name} test" for name in table.domains}
        columns = each | worst | unseen | loss | means
    named = {"worst_domain": None} if table.is_many else {}
    numbers = {f"{quantity.name}_mean": title for quantity, title in columns.items()}
    first = dict.fromkeys(("method", "n", "configurations"))
    return to_terminal(table.sheet.arranged({**first, **numbers, **named}))


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
    _sentences(console, one.comparisons)
    console.print()


def _sentences(console: Console, found: Iterable[Comparison]) -> None:
    """A line a comparison, its verdict in colour."""
    for one in found:
        text = Text(clean(one.sentence).removesuffix(one.said))
        _line(console, text.append(one.said, COLOUR_OF_WORD[one.word]))


def _fair(console: Console, one: SectionReport) -> None:
    """The fair protocol's differences, and the static front's answer."""
    if one.fair is not None:
        _line(console, Text("The fair protocol: tuned on validation, seed by seed", style="bold"))
        for tuned in one.fair.methods:
            budget = f"{tuned.configurations} configurations, {tuned.runs} runs"
            _line(console, Text(clean(f"{tuned.label}: {budget}; {chosen_text(tuned)}")))
        _sentences(console, one.fair.comparisons)
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
        cell, known = measured_cell(row), "no bound is proved"
        measured = " ± ".join(filter(None, (cell.text, cell.beside)))
        if row.bound is not None:
            known = f"bound {bound_cell(row).text}, holds: {row.holds}"
        _line(console, Text(clean(f"{row.label}: {measured}, {known} (n = {len(row.runs)})")))
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
