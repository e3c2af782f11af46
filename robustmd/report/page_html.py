"""index.html: the report as one self-contained page, by the templates in templates/."""

import base64
import hashlib
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustmd.report.entries import RunEntry
from robustmd.report.estimate import SPREAD_WORDS, Estimate
from robustmd.report.fair_formats import BUDGET_HEAD, PAIRED, budget_caption, budget_rows
from robustmd.report.figures.running_time import seconds_text
from robustmd.report.forest import forest
from robustmd.report.licences import licences_of, may_be_shown
from robustmd.report.many import domains_text, is_many, some_text
from robustmd.report.page import LEFT_OUT, relative
from robustmd.report.paired import Comparison
from robustmd.report.paired_table import paired_caption
from robustmd.report.quantities import WORST_TEST_ACCURACY
from robustmd.report.result import Report, SectionFiles, SectionReport
from robustmd.report.settings_key import UNSET, differing, short_key, shown_value
from robustmd.report.table import WARNED, Row, Table, cell_text
from robustmd.report.templating import asset, html_templates
from robustmd.runs import files

STYLE, SCRIPT = asset("style.css"), asset("sort.js")
LINKED = (files.CONFIG, files.METRICS, files.WEIGHTS, files.SUMMARY, files.ENVIRONMENT, files.LOG)
SHOWN_SCALE = 160 / 80  # pixels of an image's file to one of the page: sharp on dense screens
SMALL = 480  # pixels of the page that a narrow screen can show whole
NAMED = 4  # methods of one verdict that are named
_Cell = tuple[Any, Any, Any]  # what a cell of the table shows: text, and two more
VERDICTS = ("better", "equivalent", "undecided", "worse")


def write_html(report: Report, made: Mapping[str, SectionFiles]) -> str:
    """index.html as text. `made`: the files of each section, by its folder.

    The page reaches no network: its style, script and images are in it, and its content security
    policy lets nothing else load. Links lead to files beside it.
    """
    return _TEMPLATES.get_template("page.html.j2").render(report=report, files=made)


def policy() -> str:
    """Nothing but this style, this script and images that are in the page."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(STYLE)}'; "
        f"script-src '{_hash(SCRIPT)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def verdict(one: SectionReport) -> str:
    """ "Worst test accuracy against even: better: opt (+6.56 points); undecided: kl (+0.20)." Every
    method that was compared counts, not the best of them."""
    found = forest(one.comparisons)
    if found is None:
        return (
            f"No verdict: it needs {one.section.baseline} and another mixture, trained in the same "
            "way, with a seed in common."
        )
    said = []
    for word in VERDICTS:
        names = [_gain(gain) for gain, _ in found.rows if gain.word == word]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        said += [f"{word}: {', '.join(names[:NAMED])}{more}"] if names else []
    return f"Worst test accuracy against {one.section.baseline}: {'; '.join(said)}."


def _gain(one: Comparison) -> str:
    """ "opt (+6.56 points, n = 3)", and what keeps it undecided."""
    why = one.said.removeprefix(one.word).removeprefix(":")
    return f"{one.method} ({one.mean_text} points, n = {one.difference.n}{why and f',{why}'})"


def protocol(one: SectionReport) -> str:
    """n, selection, what ± is, device and compute."""
    counts = sorted({len(group.runs) for group in one.section.groups})
    n = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    devices = ", ".join(sorted({row.device for row in one.compute}))
    at_least = "" if all(row.is_complete for row in one.compute) else "at least "
    runs = sum(row.runs for row in one.compute)
    spent = seconds_text(sum(row.seconds for row in one.compute))
    spread = SPREAD_WORDS[one.table.spread] if counts[-1] > 1 else "none (n = 1)"
    return (
        f"n = {n} seed{'s' if counts[-1] > 1 else ''} a row. Numbers are of "
        f"{one.table.selection.words}. ±: {spread}. Intervals: 95 % t, paired by seed. "
        f"Device: {devices}. Compute: {at_least}{spent} in {runs} runs, unfinished ones included."
    )


def _order(table: Table) -> list[int]:
    """Places of the columns: worst test accuracy, the unseen domains', the other worst-case ones,
    the mean, then the domains'; of many domains the worst tenth before the mean, and none of the
    domains."""

    def rank(place: int) -> tuple[int, int]:
        column = table.columns[place]
        if column == WORST_TEST_ACCURACY:
            return 0, place
        if column.unseen:
            return 1, place
        return (4 if column.domain is not None else 2 if column.is_worst else 3), place

    return sorted(table.shown, key=rank)


def _with_counts(table: Table, cells: Sequence[_Cell], counts: Sequence[_Cell]) -> list[_Cell]:
    """n, cfg and the like stand behind the worst test accuracy, where there is one."""
    place = 1 if table.domains else 0
    return [*cells[:place], *counts, *cells[place:]]


def result_headings(table: Table) -> list[_Cell]:
    """(text, order of the first click, class) of every column."""
    cells = [
        (
            table.heading(place),
            "ascending" if table.columns[place].is_loss else "descending",
            "num worst" if table.columns[place].is_worst else "num",
        )
        for place in _order(table)
    ]
    counts = [("n", "descending", "num"), ("cfg", "ascending", "num")]
    named = [("worst domain", "ascending", "")] if table.is_many else []
    return [("method", "ascending", ""), *_with_counts(table, cells, [*named, *counts])]


def result_cells(table: Table, row: Row) -> list[_Cell]:
    """(text, class, what it is sorted by; None: the text) of every column but the first."""
    cells = []
    for place in _order(table):
        cell, column = row.cells[place], table.columns[place]
        kinds = (
            "num",
            "worst" if column.is_worst else "",
            table.marks(table.rows.index(row), place),
        )
        value = cell.mean if isinstance(cell, Estimate) else cell or ""
        text = cell_text(cell, column, table.spread)
        cells.append((text, " ".join(filter(None, kinds)), value))
    counts = [(row.n, "num", None), (row.configured, "num", None)]
    named = [(row.worst_text, "", None)] if table.is_many else []
    return _with_counts(table, cells, [*named, *counts])


def shown_size(png: bytes) -> tuple[int, int]:
    """(width, height) in pixels of the page, from the file's header."""
    width, height = struct.unpack(">II", png[16:24])
    return round(width / SHOWN_SCALE), round(height / SHOWN_SCALE)


def data_uri(png: bytes) -> str:
    """The image as data in the page: it needs no other file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def licence_lines(licences: Mapping[str, str]) -> list[str]:
    """ "mnist: CC BY-SA 3.0"; of many domains a line a licence: "a, b, c and 997 more: …"."""
    if not is_many([*licences]):
        return [f"{name}: {licence}" for name, licence in licences.items()]
    names: dict[str, list[str]] = {}
    for name, licence in licences.items():
        names.setdefault(licence, []).append(name)
    return [f"{some_text(of)}: {licence}" for licence, of in names.items()]


def run_links(one: RunEntry, report: Report) -> list[tuple[str, str]]:
    """(name, path relative to the page) of those files of a run that are there; none where the page
    cannot reach them."""
    folder = report.outputs / one.path
    try:
        there = Path(os.path.relpath(folder, report.out.resolve())).as_posix()
    except ValueError:  # another drive
        return []
    names = (name for name in LINKED if (folder / name).is_file())
    return [(name.partition(".")[0], f"{there}/{name}") for name in names]


def unlisted(report: Report) -> list[RunEntry]:
    """Run directories of no table."""
    listed = {entry.path for one in report.sections for entry in one.entries}
    return [entry for entry in report.entries if entry.path not in listed]


_TEMPLATES = html_templates(
    policy,
    relative,
    unlisted,
    domains_text,
    verdict,
    protocol,
    forest,
    result_headings,
    result_cells,
    budget_rows,
    budget_caption,
    paired_caption,
    shown_size,
    data_uri,
    differing,
    short_key,
    shown_value,
    seconds_text,
    run_links,
    licences_of,
    licence_lines,
    may_be_shown,
    STYLE=STYLE,
    SCRIPT=SCRIPT,
    SMALL=SMALL,
    LEFT_OUT=LEFT_OUT,
    WARNED=WARNED,
    UNSET=UNSET,
    BUDGET_HEAD=BUDGET_HEAD,
    PAIRED=PAIRED,
)
