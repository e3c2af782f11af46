"""Lists of runs: what is missing, how rows differ, every run directory with its files, compute."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from robustmd.report.entries import RunEntry
from robustmd.report.figures.running_time import seconds_text
from robustmd.report.missing import Missing
from robustmd.report.page_html.markup import Markup, el, join, scrolling
from robustmd.report.page_html.results import header
from robustmd.report.result import Report, SectionReport
from robustmd.report.settings_key import UNSET, differing, short_key, shown_value
from robustmd.runs import files

LINKED = (
    files.CONFIG,
    files.METRICS,
    files.WEIGHTS,
    files.SUMMARY,
    files.ENVIRONMENT,
    files.LOG,
)
DASH = "–"


def plain_table(head: Sequence[str], rows: Sequence[Sequence[object]], label: str) -> Markup:
    """Headings that sort; the first cell of a row is its heading."""
    top = el("tr", *(header(text, "ascending") for text in head))
    body = [el("tr", el("th", row[0], scope="row"), *map(_cell, row[1:])) for row in rows]
    return scrolling(el("table", el("thead", top), el("tbody", *body)), label)


def _cell(content: object) -> Markup:
    if isinstance(content, Markup) and content.startswith("<td"):
        return content
    return el("td", content)


def missing(found: Sequence[Missing]) -> Markup:
    """Visible at once: which seeds of which rows, why, and what would run them."""
    if not found:
        return el("p", "No run is missing: every row has every seed.", class_="dim")
    rows = [
        (
            one.label,
            ", ".join(map(str, one.seeds)),
            el("td", one.reason, class_="wrap"),
            el("td", el("code", one.command), class_="wrap"),
        )
        for one in found
    ]
    count = sum(len(one.seeds) for one in found)
    title = f"{count} run{'s are' if count > 1 else ' is'} missing"
    table = plain_table(("row", "seeds", "why", "command"), rows, "missing runs")
    return el("div", el("strong", title), table, class_="missing")


def differences(one: SectionReport) -> Markup:
    """A row a method, a column a setting that is not the same in all of them."""
    groups = one.section.groups
    keys = differing(group.settings for group in groups)
    if not keys:
        return el("p", "All rows have the same settings.", class_="dim")
    rows = [
        [group.label, *(shown_value(group.settings.get(k, UNSET), k) for k in keys)]
        for group in groups
    ]
    return plain_table(["row", *map(short_key, keys)], rows, "settings that differ")


def entries(found: Sequence[RunEntry], report: Report, label: str) -> Markup:
    """Every run directory, with links to its files, relative to the page."""
    head = ("run", "seed", "status", "seconds", "device", "settings that differ", "files", "why")
    rows = [
        (
            one.label or DASH,
            DASH if one.seed is None else one.seed,
            one.status,
            el("td", _seconds(one), class_="num", data_value=_value(one)),
            one.device or DASH,
            ", ".join(f"{key}={value}" for key, value in one.differences) or DASH,
            _links(one, report),
            el("td", one.reason, class_="wrap"),
        )
        for one in found
    ]
    return plain_table(head, rows, label)


def _seconds(one: RunEntry) -> str:
    return DASH if one.seconds is None else seconds_text(one.seconds)


def _value(one: RunEntry) -> object:
    return "" if one.seconds is None else one.seconds


def _links(one: RunEntry, report: Report) -> Markup:
    """Of those files that are there; the path alone where the page cannot reach them."""
    folder = report.outputs / one.path
    try:
        relative = Path(os.path.relpath(folder, report.out.resolve())).as_posix()
    except ValueError:  # another drive
        return el("code", one.path)
    found = []
    for name in LINKED:
        if (folder / name).is_file():
            text = name.partition(".")[0]
            found += [el("a", text, href=f"./{quote(f'{relative}/{name}')}"), " "]
    return join(el("code", one.path), " ", *found)


def compute(one: SectionReport) -> Markup:
    """Seconds by method and device, failed and unfinished runs included."""
    rows = []
    for row in one.compute:
        at_least = "" if row.is_complete else "≥ "
        times = (row.seconds, row.training, row.adversary, row.data, row.measurement)
        numbers = [el("td", f"{t:.1f}", class_="num", data_value=t) for t in times]
        numbers[0] = el("td", f"{at_least}{row.seconds:.1f}", class_="num", data_value=row.seconds)
        rows.append((row.label, row.device, row.finished, row.unfinished, *numbers))
    head = ("method", "device", "finished", "unfinished", "total [s]", "training [s]")
    more = ("adversary [s]", "data [s]", "measurement [s]")
    return plain_table((*head, *more), rows, "compute")
