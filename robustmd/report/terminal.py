"""The report's summary in a terminal, or as plain text where the output goes elsewhere."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TextIO

from rich.console import Console
from rich.text import Text

from robustmd.console import make_console
from robustmd.report.content import Report
from robustmd.report.names import clean
from robustmd.report.quantities import WORST_TRAIN_LOSS
from robustmd.report.renderers import to_terminal
from robustmd.report.sheet import WARNED, Sheet
from robustmd.report.table import Table

SHOWN_PROBLEMS = 20
ANY_WIDTH = 10_000  # a terminal may fold a line, but no number is cut


def show(report: Report, stream: TextIO) -> None:
    """Prints the tables, what was left out and where the files lie; with colours only where
    `stream` is a terminal."""
    console = make_console(stream, ANY_WIDTH)
    for kept_out in report.leave_one_out:
        _block(console, f"{kept_out.section.data}: leave one domain out", [kept_out.worst_first])
    for one in report.sections:
        _block(console, one.section.title, [_accuracies(one.table)])
        _print(console, [one.front.answer, ""] if one.front else [])
        for title, sheets in one.parts.items():
            _block(console, title, [replace(sheet, caption="") for sheet in sheets])
    if report.problems:
        title = f"Left out or remarked on: {len(report.problems)}"
        first = replace(report, problems=report.problems[:SHOWN_PROBLEMS])
        _block(console, title, [first.left_out])
    _print(console, [f"Page: {report.html}", f"Text: {report.page}"])


def _print(console: Console, lines: Iterable[str], style: str = "") -> None:
    for line in lines:
        console.print(Text(clean(line), style), soft_wrap=True)


def _block(console: Console, title: str, sheets: Iterable[Sheet]) -> None:
    _print(console, [title], "bold")
    for sheet in sheets:
        _print(console, sheet.alarms, "bold red")
        console.print(to_terminal(sheet))
        _print(console, filter(None, [sheet.caption]), "dim")
        _print(console, (f"{WARNED} {line}" for line in sheet.warnings), "yellow")
    console.print()


def _accuracies(table: Table) -> Sheet:
    """The columns of a page but those of the training sets, of which the worst loss stays."""
    training = {c.name for c in table.columns if c.split == "train" and c != WORST_TRAIN_LOSS}
    sheet = table.worst_first
    names = (column.names[0] for column in sheet.columns)
    return sheet.arranged(n for n in names if n.removesuffix("_mean") not in training)
