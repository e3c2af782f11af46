"""index.html: the report as one self-contained page, by the templates in templates/."""

import base64
import hashlib
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from robustmd.report.aggregate import Group
from robustmd.report.compute import compute_sheet
from robustmd.report.content import LEFT_OUT, Report, SectionFiles, SectionReport, relative
from robustmd.report.estimate import SPREAD_WORDS, range_text, seconds_text
from robustmd.report.fair import budget_sheet
from robustmd.report.licences import licences_of, may_be_shown
from robustmd.report.missing import missing_sheet
from robustmd.report.names import domains_text, is_many, some_text
from robustmd.report.paired import Comparison, forest
from robustmd.report.regret import regret_sheet
from robustmd.report.renderers import to_html
from robustmd.report.run_list import RunEntry, entries_sheet
from robustmd.report.settings_key import UNSET, differing, short_key, shown_value
from robustmd.report.sheet import VERDICTS, WARNED, Field, Sheet, field, make_sheet
from robustmd.report.templating import asset, html_templates
from robustmd.runs.run import Problem

STYLE, SCRIPT = asset("style.css"), asset("sort.js")
SHOWN_SCALE = 160 / 80  # pixels of an image's file to one of the page: sharp on dense screens
SMALL = 480  # pixels of the page that a narrow screen can show whole
NAMED = 4  # methods of one verdict that are named


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
    n = range_text(len(group.runs) for group in one.section.groups)
    several = n != "1"
    devices = ", ".join(sorted({row.device for row in one.compute}))
    at_least = "" if all(row.is_complete for row in one.compute) else "at least "
    runs = sum(row.runs for row in one.compute)
    spent = seconds_text(sum(row.seconds for row in one.compute))
    spread = SPREAD_WORDS[one.table.spread] if several else "none (n = 1)"
    return (
        f"n = {n} seed{'s' if several else ''} a row. Numbers are of "
        f"{one.table.selection.words}. ±: {spread}. Intervals: 95 % t, paired by seed. "
        f"Device: {devices}. Compute: {at_least}{spent} in {runs} runs, unfinished ones included."
    )


def shown_size(png: bytes) -> tuple[int, int]:
    """(width, height) in pixels of the page, from the file's header."""
    width, height = struct.unpack(">II", png[16:24])
    return round(width / SHOWN_SCALE), round(height / SHOWN_SCALE)


def data_uri(png: bytes) -> str:
    """The image as data in the page: it needs no other file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def licence_lines(licences: Mapping[str, str]) -> list[str]:
    """ "mnist: CC BY-SA 3.0"; of many domains one line for each licence: "a, b, c
    and 997 more: …"."""
    if not is_many([*licences]):
        return [f"{name}: {licence}" for name, licence in licences.items()]
    names: dict[str, list[str]] = {}
    for name, licence in licences.items():
        names.setdefault(licence, []).append(name)
    return [f"{some_text(of)}: {licence}" for licence, of in names.items()]


def unlisted(report: Report) -> list[RunEntry]:
    """Run directories of no table."""
    listed = {entry.path for one in report.sections for entry in one.entries}
    return [entry for entry in report.entries if entry.path not in listed]


def settings_sheet(groups: Sequence[Group]) -> Sheet | None:
    """A row for each method, a column for each setting in which they differ; None where there is
    no such setting."""

    def setting(key: str) -> Field:
        return field(short_key(key), lambda group: shown_value(group.settings.get(key, UNSET), key))

    keys = differing(group.settings for group in groups)
    fields = [field("row", lambda group: group.label), *map(setting, keys)]
    return make_sheet("settings that differ", groups, fields) if keys else None


def problems_sheet(problems: Sequence[Problem], outputs: Path) -> Sheet:
    """What is in no table, and why."""
    fields = [
        field("path", lambda one: relative(one.path, outputs)),
        field("what", lambda one: LEFT_OUT[one.scope]),
        field("why", lambda one: one.reason, kind="long"),
    ]
    return make_sheet("left out", problems, fields)


_TEMPLATES = html_templates(
    policy,
    unlisted,
    domains_text,
    verdict,
    protocol,
    forest,
    to_html,
    budget_sheet,
    compute_sheet,
    entries_sheet,
    missing_sheet,
    problems_sheet,
    regret_sheet,
    settings_sheet,
    shown_size,
    data_uri,
    licences_of,
    licence_lines,
    may_be_shown,
    STYLE=STYLE,
    SCRIPT=SCRIPT,
    SMALL=SMALL,
    WARNED=WARNED,
)
