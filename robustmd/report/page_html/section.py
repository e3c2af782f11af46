"""One data set on the page: the verdict and its numbers first, then everything behind them."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from robustmd.report.domains_table import NAME as DOMAINS
from robustmd.report.licences import licences_of, may_be_shown
from robustmd.report.many import domains_text, is_many, some_text
from robustmd.report.page_html import runs
from robustmd.report.page_html.fair import fair_results
from robustmd.report.page_html.figures import figures
from robustmd.report.page_html.forest import forest
from robustmd.report.page_html.markup import Markup, el, join
from robustmd.report.page_html.results import results
from robustmd.report.page_html.words import protocol, verdict
from robustmd.report.result import DrawnFile, Report, SectionReport
from robustmd.report.table import WARNED

NO_EXAMPLES = "No example images: none of the licences above lets them be passed on."


def section(one: SectionReport, report: Report, drawn: Sequence[DrawnFile]) -> Markup:
    """Verdict, forest plot, protocol, table, what is missing; then figures, runs, licences."""
    name, folder = one.section.data, one.section.folder
    more = ("fair.tex", "fair.md", "fair.csv", "fair_choices.csv") if one.fair is not None else ()
    more = (*more, DOMAINS) if one.table.is_many else more
    files = [
        join(" ", el("a", file, href=f"./{quote(f'{folder}/{file}')}"))
        for file in ("table.tex", "table.md", "table.csv", "runs.csv", "compute.csv", *more)
    ]
    return el(
        "section",
        el("h2", f"{name}: {domains_text(one.section.domains)}"),
        el("p", verdict(one), class_="verdict"),
        forest(one),
        el("p", protocol(one), class_="dim"),
        results(one.table),
        fair_results(one.fair),
        _lines(f"{WARNED} Warnings", one.table.warnings),
        runs.missing(one.missing),
        el("p", "Files:", *files, class_="dim"),
        el("h3", "Figures"),
        figures(drawn, folder),
        el("h3", "How the rows differ"),
        runs.differences(one),
        el("h3", "Compute"),
        runs.compute(one),
        el(
            "details",
            el("summary", f"All {len(one.entries)} run directories"),
            runs.entries(one.entries, report, f"runs of {name}"),
        ),
        _lines("Notes of these runs", one.table.notes),
        _licences(one),
        id=folder,
    )


def _licences(one: SectionReport) -> Markup:
    found = licences_of(one.section)
    shown = _by_licence(found) if is_many(one.section.domains) else found
    items = [el("li", f"{name}: {licence}") for name, licence in shown.items()]
    hidden = not any(map(may_be_shown, found.values()))
    more = el("p", NO_EXAMPLES, class_="dim") if hidden else ""
    return join(el("h3", "Licences of the data"), el("ul", *items), more)


def _by_licence(licences: Mapping[str, str]) -> dict[str, str]:
    """{"a, b, c and 997 more": licence}: a line a licence."""
    names: dict[str, list[str]] = {}
    for name, licence in licences.items():
        names.setdefault(licence, []).append(name)
    return {some_text(of): licence for licence, of in names.items()}


def _lines(title: str, lines: Iterable[str]) -> Markup:
    items = [el("li", line) for line in lines]
    return join(el("h3", title), el("ul", *items)) if items else Markup("")
