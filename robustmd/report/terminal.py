"""The report's summary in a terminal, or as plain text where the output goes elsewhere."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.console import make_console
from robustmd.report.compare import TreeComparison, compare_lines
from robustmd.report.content import LEFT_OUT, SectionReport, relative
from robustmd.report.estimate import SPREAD_WORDS
from robustmd.report.fair import Tuned, chosen_text
from robustmd.report.missing import Missing
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
from robustmd.report.regret import RegretRow, alarms, bound_cell, measured_cell
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
    apart, sections = result.report.leave_one_out, result.sections
    tables = {id(table): _table(table) for table in (*apart, *(one.table for one in sections))}
    # Never narrower than the numbers: a terminal may fold a line, but none is cut.
    measure = Console(width=ANY_WIDTH)
    console.width = max(console.width, *(measure.measure(t).maximum for t in tables.values()))
    for kept_out in apart:
        _line(console, Text(clean(f"{kept_out.data}: leave one domain out"), style="bold"))
        console.print(tables[id(kept_out)])
        _line(console, Text(f"{clean(kept_out.caption)}\n", style="dim"))
    for one in sections:
        title = f"{one.section.data}: {domains_text(one.section.domains)}"
        _line(console, Text(clean(title), style="bold"))
        console.print(tables[id(one.table)])
        _line(console, Text(_legend(one), style="dim"))
        for title, lines in _below(one):
            _block(console, title, lines)
    _block(console, f"Left out or remarked on: {len(result.problems)}", _problems(result))
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


def _block(console: Console, title: str, lines: Sequence[Text]) -> None:
    """Nothing where there is no line."""
    if lines:
        for line in ([Text(title, style="bold")] if title else []) + [*lines]:
            _line(console, line)
        console.print()


def _below(one: SectionReport) -> Iterator[tuple[str, list[Text]]]:
    """(title, lines) of what is said below a table."""
    yield "", [Text(f"{WARNED} {clean(line)}", style="yellow") for line in one.table.warnings]
    paired = "Paired differences by seed, with 95 % t intervals"
    yield paired, [*map(_sentence, one.comparisons)]
    if one.fair is not None:
        budget = [*map(_budget, one.fair.methods), *map(_sentence, one.fair.comparisons)]
        yield "The fair protocol: tuned on validation, seed by seed", budget
    if one.front is not None:
        yield "", [Text(clean(one.front.answer))]
    broken = [Text(clean(alarm), style="bold red") for alarm in alarms(one.regrets)]
    regret = "Measured regret per update [nats] and its proved bound"
    yield regret, [*map(_regret, one.regrets), *broken]
    missing = "Missing, and the command that would run it"
    yield missing, [*map(_gap, one.missing[:SHOWN_PROBLEMS])]


def _sentence(one: Comparison) -> Text:
    """Its verdict in colour."""
    text = Text(clean(one.sentence).removesuffix(one.said))
    return text.append(one.said, COLOUR_OF_WORD[one.word])


def _budget(one: Tuned) -> Text:
    budget = f"{one.configurations} configurations, {one.runs} runs"
    return Text(clean(f"{one.label}: {budget}; {chosen_text(one)}"))


def _regret(row: RegretRow) -> Text:
    known = "no bound is proved"
    if row.bound is not None:
        known = f"bound {bound_cell(row).text}, holds: {row.holds}"
    return Text(clean(f"{row.label}: {measured_cell(row).whole()}, {known} (n = {row.measured.n})"))


def _gap(one: Missing) -> Text:
    return Text(clean(f"{one.label}, seed {', '.join(map(str, one.seeds))}: {one.command}"))


def _problems(result: Written) -> list[Text]:
    shown, more = result.problems[:SHOWN_PROBLEMS], len(result.problems) - SHOWN_PROBLEMS
    places = (relative(problem.path, result.report.outputs) for problem in shown)
    lines = [
        f"{place}: {LEFT_OUT[problem.scope]}: {problem.reason}"
        for place, problem in zip(places, shown, strict=True)
    ]
    lines += [f"and {more} more: see the page"] if more > 0 else []
    return [Text(clean(line)) for line in lines]
