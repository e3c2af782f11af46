"""From a folder of runs to a folder with tables, figures and pages, and to a terminal."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pandas as pd
from rich.console import Console
from rich.text import Text

from robustmd.console import make_console
from robustmd.errors import UserError, printable
from robustmd.metrics import BestBy
from robustmd.report import fair, front, render, summary, tables
from robustmd.report.numbers import Rule, Study, studies
from robustmd.report.summary import Summary, summarize
from robustmd.report.tables import WARNED, Table
from robustmd.runs import files
from robustmd.runs.files import write_atomically
from robustmd.runs.records import Frame, Records, read_records

if TYPE_CHECKING:
    from robustmd.report.figures import Drawing

SHOWN_PROBLEMS = 20
SCOPES = {"measurement": "measurement left out", "directory": "passed over", "remark": "remark"}
LINKED = (files.CONFIG, files.METRICS, files.WEIGHTS, files.SUMMARY, files.ENVIRONMENT, files.LOG)


@dataclass(frozen=True)
class Section:
    """What a reader is shown of one study, the `summary` first. `parts`: {title: the tables below
    it}, what pages fold below the `results`; `csv`: {file: its table}."""

    study: Study
    summary: Summary
    results: Table
    missing: Table | None
    parts: dict[str, list[Table]]
    csv: dict[str, Frame]
    answer: str = ""  # of the static front
    figures: list["Drawing"] = field(default_factory=list)

    @property
    def texts(self) -> dict[str, list[Table]]:
        """{file: the tables in it}, in Markdown and LaTeX."""
        found = {"table.md": [self.results], "table.tex": [self.results]}
        for title, shown in self.parts.items():
            if title == "The fair protocol":
                found |= {"fair.md": shown, "fair.tex": shown[:2]}
            elif shown[0].file:
                found[f"{shown[0].file}.md"] = shown
        if "metrics.md" in found:
            found["metrics.tex"] = found["metrics.md"]
        return found

    @property
    def files(self) -> list[str]:
        return sorted([*self.csv, *self.texts])

    @property
    def alarms(self) -> list[str]:
        return [alarm for part in self.parts.values() for table in part for alarm in table.alarms]

    @property
    def entries(self) -> Table:
        return tables.run_entries(self.study)

    @property
    def settings(self) -> Table:
        return tables.settings(self.study)


@dataclass(frozen=True)
class Report:
    """All of it. `left_out`: what is in no table, and why; `files`: those that were written,
    README.md and index.html first."""

    outputs: Path
    out: Path
    sections: list[Section]
    leave_one_out: list[tuple[str, str, Table]]
    left_out: Table | None
    files: list[Path] = field(default_factory=list)

    @property
    def overview(self) -> Table | None:
        """Of several data sets."""
        found = [one.summary for one in self.sections]
        return summary.overview(found) if len(found) > 1 else None

    @property
    def page(self) -> Path:
        return self.out / "README.md"

    @property
    def html(self) -> Path:
        return self.out / "index.html"

    def links(self, run: str) -> list[tuple[str, str]]:
        """(name, path) of those files of a run that are there; none where the page cannot reach
        them."""
        try:
            folder = Path(os.path.relpath(self.outputs / run, self.out.resolve())).as_posix()
        except ValueError:  # another drive
            return []
        names = (name for name in LINKED if (self.outputs / run / name).is_file())
        return [(name.partition(".")[0], f"{folder}/{name}") for name in names]


def make_section(study: Study, columns: Sequence[str] = ()) -> Section:
    """All numbers of one study; `columns`: those of the results that a reader is shown, as "worst";
    none: all."""
    results = tables.results(study)
    if columns:
        asked = [one for one in tables.reading_order(study) if one[0] in columns]
        kept = {"method", "n", "cfg", *(tables.shown_name(study, one) for one in asked)}
        results = replace(results, shown=results.shown[[c for c in results.shown if c in kept]])
    contest, found = fair.fair(study), front.front(study)
    parts: dict[str, list[Table | None]] = {
        f"Paired differences to {study.baseline}": [tables.differences(study)],
        "The fair protocol": [*contest.tables] if contest else [],
        "Further metrics": [tables.further(study)],
        "Regret of the adversary": [tables.regret(study)],
        "Compute": [tables.compute(study)],
    }
    shown = {title: [one for one in part if one is not None] for title, part in parts.items()}
    shown = {title: part for title, part in shown.items() if part}
    csv = {"table.csv": results.raw, "runs.csv": tables.runs_csv(study)}
    csv["compute.csv"] = shown["Compute"][0].raw
    for title, (first, *_) in shown.items():
        if first.file and title != "The fair protocol":
            csv[f"{first.file}.csv"] = first.raw
    if study.is_many:
        csv["domains.csv"] = tables.domains_csv(study)
    if contest is not None:
        csv |= {"fair.csv": contest.results.raw, "fair_runs.csv": fair.runs_csv(contest)}
        if contest.paired is not None:
            csv["fair_paired.csv"] = contest.paired.raw
    if found is not None:
        csv["static_front.csv"] = found.csv
    return Section(
        study,
        summarize(contest.study if contest else study, contest is not None),
        results,
        tables.missing(study),
        shown,
        csv,
        found.answer if found else "",
    )


def make_report(
    outputs: Path | Sequence[Path],
    out: Path,
    data: str | None = None,
    experiment: str | None = None,
    *,
    rule: Rule | None = None,
    spread: str = "std",
    baseline: str | None = None,
    columns: Sequence[str] = (),
) -> Report:
    """All numbers of a report; writes nothing. Raises `UserError` without a finished run, or
    without one of `baseline`."""
    folders = [outputs] if isinstance(outputs, Path) else outputs
    records = read_records(*folders)
    asked = _asked(records, data, experiment)
    found, left_out = studies(asked, rule or Rule(), spread, baseline)
    if not found:
        named = ", ".join(map(str, folders))
        raise UserError(_nothing(records, asked, left_out, named, data, experiment))
    methods = sorted({method for study in found for method in study.runs["method"]})
    if baseline is not None and baseline not in methods:
        raise UserError(
            f"--baseline {printable(baseline)}: no finished run of it; there are runs of: "
            f"{printable(', '.join(methods))}"
        )
    apart = front.leave_one_out(found)
    # the folders of the report may lie in outputs and are no runs that were passed over
    names = [study.folder for study in found] + [name for _, name, _ in apart]
    own = {out.resolve(), *(out.resolve() / name for name in names)}
    remarks = asked.remarks
    is_own = remarks["path"].map(lambda path: records.outputs / path in own).astype(bool)
    remarks = remarks[~is_own | (remarks["scope"] != "directory")].assign(
        **{"": remarks["scope"].map(SCOPES)}
    )
    lost = left_out.assign(path=left_out["run"], **{"": "run left out"})
    lines = pd.concat([lost, remarks])[["path", "", "reason"]].sort_values("path", kind="stable")
    table = Table("left out", pd.DataFrame(), lines, texts=["", "reason"])
    sections = [make_section(study, columns) for study in found]
    return Report(records.outputs, out, sections, apart, table if len(lines) else None)


def _asked(records: Records, data: str | None, experiment: str | None) -> Records:
    """Those of the data set and the preset, and all of which that is not known."""
    kept = []
    for frame in (records.runs, records.remarks):
        is_asked = pd.Series(True, frame.index)
        for name, value in (("data", data), ("experiment", experiment)):
            if value is not None:
                is_asked &= (frame[name] == value) | frame["data"].isna()
        kept.append(frame[is_asked])
    return replace(records, runs=kept[0], remarks=kept[1])


def _nothing(
    records: Records,
    asked: Records,
    left_out: Frame,
    outputs: str,
    data: str | None,
    experiment: str | None,
) -> str:
    """Why there is no report."""
    sound = records.runs[records.runs["reason"] == ""]
    if len(sound) and not (asked.runs["reason"] == "").any():
        flags = {"--data": data, "--experiment": experiment}
        said = " ".join(f"{flag} {name}" for flag, name in flags.items() if name is not None)
        pairs = zip(sound["data"], sound["experiment"], strict=True)
        there = {f"{name} ({preset})" if preset else name for name, preset in pairs}
        names = ", ".join(sorted(map(printable, there)))
        return f"{said}: {outputs} has no finished run of it; there are runs of: {names}"
    others = records.remarks[records.remarks["scope"] == "directory"]
    problems = pd.concat([left_out.assign(path=left_out["run"]), others]).sort_values("path")
    found = "no runs in it"
    if len(problems):
        first = problems.iloc[0]
        found = (
            f"no finished run that the report can take among the {len(problems)} directories "
            f"found (first: {printable(first['path'])}: {printable(first['reason'])})"
        )
    return f"{outputs}: {found}; make some with `robustmd train -m method=even,opt seed=0,1`"


def write_report(
    outputs: Path | Sequence[Path],
    out: Path,
    data: str | None = None,
    experiment: str | None = None,
    *,
    draw: bool = True,
    width: str | None = None,
    **options: object,
) -> Report:
    """Writes `<out>/README.md`, `<out>/index.html` and, for each data set, `<out>/<data>/` with the
    tables, the values of every run and, with `draw`, every figure that the runs allow. Each file is
    replaced whole; nothing else in `out` is touched. `width`: "column" or "text" of a paper, None:
    that of a page. `options` are `make_report`'s.

    Several folders of runs, as of two people, make one report.

    Raises `UserError`: no finished run in `outputs`, none of `baseline`, or `out` cannot be
    written.
    """
    report = make_report(outputs, out, data, experiment, **options)  # type: ignore[arg-type]
    written: list[Path] = []
    sections = []
    for one in report.sections:
        folder = out / one.study.folder
        written += _write_tables(folder, one.csv, one.texts)
        drawn = _draw(one.study, folder, written, width) if draw else []
        sections.append(replace(one, figures=drawn))
    for _, folder_name, table in report.leave_one_out:
        texts = {"table.md": [table], "table.tex": [table]}
        written += _write_tables(out / folder_name, {"table.csv": table.raw}, texts)
    report = replace(report, sections=sections)
    write(report.page, render.page("markdown", report))
    write(report.html, render.page("html", report))
    return replace(report, files=[report.page, report.html, *written])


def _write_tables(folder: Path, csv: dict[str, Frame], texts: dict[str, list[Table]]) -> list[Path]:
    formats = {"md": render.to_markdown, "tex": render.to_latex}
    found = [write(folder / name, render.to_csv(raw)) for name, raw in csv.items()]
    for name, shown in texts.items():
        parts = map(formats[name.rpartition(".")[2]], shown)
        found.append(write(folder / name, "\n".join(parts)))
    return found


def _draw(study: Study, folder: Path, written: list[Path], width: str | None) -> list["Drawing"]:
    """Draws and writes one figure after the other, so that few are in memory at once; adds their
    files to `written`."""
    from robustmd.report import figures  # noqa: PLC0415 - loads matplotlib

    drawn = []
    for made in figures.draw_all(study, width):
        for kind in ("png", "pdf"):
            content = figures.image_bytes(made.figure, kind)
            written.append(write(folder / f"{made.name}.{kind}", content))
        drawn.append(replace(made, svg=figures.image_bytes(made.figure, "svg")))
        made.figure.clear()
    return drawn


def write(path: Path, content: str | bytes) -> Path:
    """Replaces the file whole; makes its folder. Raises `UserError`."""
    body = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda stream: stream.write(body))
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); name another folder with --out"
        ) from None
    return path


def show(report: Report, stream: TextIO) -> None:
    """Prints the summaries, what is missing or was left out, and last the verdicts beside the path
    of the page; with colours only where `stream` is a terminal."""
    console = make_console(stream)
    if report.overview is not None:
        _show_block(console, "Verdicts by data set", report.overview)
    for title, _, table in report.leave_one_out:
        _show_block(console, title, table)
    for one in report.sections:
        _show_section(console, one)
    if report.left_out is not None:
        lines = report.left_out.shown
        table = replace(report.left_out, shown=lines[:SHOWN_PROBLEMS])
        _show_block(console, f"Left out or remarked on: {len(lines)}", table)
    for one in report.sections:
        _print(console, [f"{one.study.data}: {one.summary.verdict}"], "bold")
    _print(console, [f"Page: {report.html}", f"Text: {report.page}"])


def _show_section(console: Console, one: Section) -> None:
    first = one.summary
    _print(console, one.alarms, "bold red")
    _print(console, [first.title], "bold")
    _print(console, [first.question] if first.question else [])
    console.print(render.to_terminal(first.table, console.width))
    more = [] if first.rest is None else [f"{len(first.rest.shown)} more rows are in the page."]
    _print(console, [*more, first.trust], "dim")
    _print(console, (f"{WARNED} {line}" for line in one.results.warnings), "yellow")
    _print(console, [one.answer] if one.answer else [])
    for lost in one.missing.shown.itertuples() if one.missing else ():
        _print(console, [f"Missing: {lost.row}, seeds {lost.seeds}: {lost.reason}"], "yellow")
        _print(console, [f"  {lost.command}"])
    console.print()


def _print(console: Console, lines: Iterable[str], style: str = "") -> None:
    for line in lines:
        console.print(Text(printable(line), style), soft_wrap=True)


def _show_block(console: Console, title: str, table: Table) -> None:
    _print(console, [title], "bold")
    console.print(render.to_terminal(table, console.width))
    _print(console, filter(None, [table.caption]), "dim")
    console.print()


def report(
    outputs: Sequence[Path],
    out: Path,
    data: str | None,
    experiment: str | None,
    select: str,
    best_by: str,
    spread: str,
    baseline: str | None,
    columns: Sequence[str],
    width: str | None,
    draw: bool,
) -> int:
    """`robustmd report`: write the report and print its summary. Raises UserError."""
    try:
        rule = Rule(select, BestBy.of(best_by))
    except ValueError as error:
        raise UserError(f"--best-by {best_by}: {error}") from None
    written = write_report(
        outputs,
        out,
        data,
        experiment,
        draw=draw,
        width=width,
        rule=rule,
        spread=spread,
        baseline=baseline,
        columns=columns,
    )
    show(written, sys.stdout)
    return 0
