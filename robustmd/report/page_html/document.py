"""The whole page: one file that asks for nothing else."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from robustmd.report.leave_one_out import LeaveOneOut
from robustmd.report.names import clean
from robustmd.report.page import LEFT_OUT, relative
from robustmd.report.page_html.look import STYLE
from robustmd.report.page_html.markup import Markup, el, join, void
from robustmd.report.page_html.results import results
from robustmd.report.page_html.runs import entries, plain_table
from robustmd.report.page_html.section import section
from robustmd.report.page_html.sorting import SCRIPT
from robustmd.report.result import DrawnFile, Report


def write_html(report: Report, images: Mapping[str, Sequence[DrawnFile]]) -> str:
    """index.html as text. `images`: the figures of each section, by its folder.

    The page reaches no network: its style, script and images are in it, and its content security
    policy lets nothing else load. Links lead to files beside it.
    """
    parts = [section(one, report, images.get(one.section.folder, ())) for one in report.sections]
    body = el(
        "body",
        el("h1", "robustmd report"),
        _contents(report),
        *map(_leave_one_out, report.leave_one_out),
        *parts,
        _left_out(report),
        el("script", Markup(SCRIPT)),
    )
    return f"<!doctype html>\n{el('html', _head(report), body, lang='en')}\n"


def _head(report: Report) -> Markup:
    names = ", ".join(one.section.data for one in report.sections)
    return el(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=policy()),
        void("meta", name="viewport", content="width=device-width,initial-scale=1"),
        void("meta", name="referrer", content="no-referrer"),
        el("title", f"robustmd report: {names}"),
        void("link", rel="icon", href="data:,"),
        el("style", Markup(STYLE)),
    )


def policy() -> str:
    """Nothing but this style, this script and images that are in the page."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(STYLE)}'; "
        f"script-src '{_hash(SCRIPT)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _contents(report: Report) -> Markup:
    """Links to the data sets where there are several."""
    if len(report.sections) < 2:
        return Markup("")
    links = [
        join(el("a", one.section.data, href=f"#{one.section.folder}"), " ")
        for one in report.sections
    ]
    return el("nav", "Data sets: ", *links, aria_label="data sets")


def _leave_one_out(table: LeaveOneOut) -> Markup:
    links = [
        join(" ", el("a", name, href=f"./{quote(f'{table.folder}/{name}')}"))
        for name in ("table.tex", "table.md", "table.csv")
    ]
    files = el("p", "Files:", *links, class_="dim")
    title = el("h2", f"{table.data}: leave one domain out")
    return el("section", title, results(table), files, id=table.folder)


def _left_out(report: Report) -> Markup:
    """Run directories of no table, and everything else that the reader remarked on."""
    listed = {entry.path for one in report.sections for entry in one.entries}
    others = [entry for entry in report.entries if entry.path not in listed]
    title = el("h2", "Left out", id="left-out")
    if not report.problems and not others:
        return join(title, el("p", "Nothing: every directory found is a finished run."))
    rows = [
        (
            clean(relative(problem.path, report.outputs)),
            LEFT_OUT[problem.scope],
            el("td", clean(problem.reason), class_="wrap"),
        )
        for problem in report.problems
    ]
    shown = plain_table(("path", "what", "why"), rows, "left out") if rows else ""
    more = entries(others, report, "run directories of no table") if others else ""
    return join(title, shown, more)
