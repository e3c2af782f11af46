"""From a folder of runs to a folder with tables, figures and pages."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from robustmd.errors import UserError
from robustmd.report import page
from robustmd.report.aggregate import Section, sections, table_of
from robustmd.report.compare import TreeComparison, compare_trees
from robustmd.report.compare_page import compare_csv, compare_markdown
from robustmd.report.compute import compute_csv, compute_rows
from robustmd.report.domains_table import NAME as DOMAINS
from robustmd.report.domains_table import domains_csv
from robustmd.report.earlier import LIST, list_text, own_folders, remove_stale
from robustmd.report.entries import left_out_entry, section_entries
from robustmd.report.estimate import SpreadKind
from robustmd.report.fair import fair
from robustmd.report.fair_formats import choices_csv, fair_csv, fair_latex, fair_markdown
from robustmd.report.figures import draw_all, image_bytes
from robustmd.report.front import front
from robustmd.report.front_formats import front_csv
from robustmd.report.latex_table import to_latex
from robustmd.report.leave_one_out import leave_one_out
from robustmd.report.missing import missing_runs
from robustmd.report.names import clean
from robustmd.report.page_html import write_html
from robustmd.report.paired import comparisons
from robustmd.report.paired_table import paired_csv, paired_markdown
from robustmd.report.regret import regret_csv, regret_markdown, regret_rows, unreadable_regrets
from robustmd.report.result import DrawnFile, Report, SectionFiles, SectionReport
from robustmd.report.runs_table import runs_csv
from robustmd.report.selection import Selection
from robustmd.report.table import Table, build_table
from robustmd.report.table_formats import to_csv, to_markdown
from robustmd.runs.files import write_atomically
from robustmd.runs.reader import Collection, Problem, collect

PAGE = "README.md"
HTML = "index.html"


@dataclass(frozen=True)
class Written:
    """A written report: its numbers, its pages, and all its files."""

    report: Report
    page: Path
    html: Path
    files: tuple[Path, ...]

    @property
    def sections(self) -> tuple[SectionReport, ...]:
        return self.report.sections

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.report.problems


def write_report(
    outputs: Path,
    out: Path,
    data: str | None = None,
    *,
    selection: Selection | None = None,
    spread: SpreadKind = "std",
    baseline: str | None = None,
) -> Written:
    """Writes `<out>/README.md`, `<out>/index.html` and, for each data set, `<out>/<data>/` with the
    tables, the paired differences, the regrets, the compute, runs.csv and every figure that the
    runs allow. Each file is replaced whole; what an earlier report wrote in `out` and this
    one does not is removed, and nothing else there is touched.

    Args:
        outputs: folder of run directories.
        out: folder of the report; made where it is not there.
        data: only this data set.
        selection: which measurements the numbers are of, for every row.
        spread: what stands behind ±.
        baseline: the method that the others are compared with; None: the first of even, erm,
            individual that was run.

    Raises:
        UserError: no finished run in `outputs`, none of `baseline`, or `out` cannot be written.
    """
    rule = selection or Selection()
    report = make_report(outputs, out, data, selection=rule, spread=spread, baseline=baseline)
    written: list[Path] = []
    files: dict[str, SectionFiles] = {}
    for one in report.sections:
        folder = out / one.section.folder
        tables = _tables(one, report.selection)
        for name, content in tables.items():
            written.append(_write(folder / name, content))
        drawn, images = _figures(one, folder)
        files[one.section.folder] = SectionFiles(tuple(tables), tuple(drawn))
        written += images
    for table in report.leave_one_out:
        for name, content in _formats(table).items():
            written.append(_write(out / table.folder / name, content))
    page_path = _write(out / PAGE, page.page_markdown(report, files))
    html_path = _write(out / HTML, write_html(report, files))
    every = (page_path, html_path, *written)
    remove_stale(out, every)
    _write(out / LIST, list_text(out, every))
    return Written(report, page_path, html_path, every)


def make_report(
    outputs: Path,
    out: Path,
    data: str | None,
    *,
    selection: Selection,
    spread: SpreadKind,
    baseline: str | None = None,
) -> Report:
    """All numbers of a report; writes nothing. Raises `UserError` without a finished run, or
    without one of `baseline`."""
    collection = collect(outputs)
    chosen = [run for run in collection.runs if data is None or run.data == data]
    found, left_out = sections(chosen, selection, collection.problems)
    if not found:
        raise UserError(_nothing(collection, left_out, outputs, data))
    found = _compared_with(baseline, found)
    unreadable = [problem for section in found for problem in unreadable_regrets(section)]
    own = own_folders(out, (section.folder for section in found))
    problems = _relevant((*collection.problems, *left_out, *unreadable), own, data)
    made = tuple(_section_report(s, selection, spread, left_out) for s in found)
    entries = [entry for one in made for entry in one.entries]
    listed = {entry.path for entry in entries}
    for problem in problems:
        relative = clean(page.relative(problem.path, collection.outputs))
        if problem.scope == "run" and relative not in listed:
            entries.append(left_out_entry(problem, collection.outputs))
    apart = leave_one_out(found, selection, spread)
    return Report(collection.outputs, out, selection, spread, made, apart, problems, tuple(entries))


def write_comparison(
    a: Path, b: Path, out: Path, selection: Selection, data: str | None = None
) -> tuple[TreeComparison, tuple[Path, ...]]:
    """Writes `<out>/compare.md` and `<out>/compare.csv`: the runs of `a` against those of `b`.
    Raises `UserError` as `compare_trees`, and where `out` cannot be written."""
    found = compare_trees(a, b, selection, data)
    contents = {"compare.md": compare_markdown(found), "compare.csv": compare_csv(found)}
    return found, tuple(_write(out / name, text) for name, text in contents.items())


def _compared_with(baseline: str | None, found: Sequence[Section]) -> tuple[Section, ...]:
    """The sections with the method that `--baseline` asks for."""
    there = sorted({group.method for section in found for group in section.groups})
    if baseline is not None and baseline not in there:
        raise UserError(
            f"--baseline {clean(baseline)}: no finished run of it; there are runs of: "
            f"{', '.join(map(clean, there))}"
        )
    return tuple(replace(section, asked=baseline) for section in found)


def _section_report(
    section: Section, selection: Selection, spread: SpreadKind, left_out: Iterable[Problem]
) -> SectionReport:
    beside = {problem.path for problem in section.unfinished}
    twice = [p for p in left_out if p.path not in beside and _is_in(p, section)]
    return SectionReport(
        section,
        build_table(section, selection, spread),
        comparisons(section),
        regret_rows(section),
        compute_rows(section, [p.run for p in twice if p.run is not None]),
        missing_runs(section),
        section_entries(section, twice),
        fair(section, selection, spread),
        front(section),
    )


def _is_in(problem: Problem, section: Section) -> bool:
    run = problem.run
    return run is not None and table_of(run) == table_of(section.runs[0])


def _tables(one: SectionReport, selection: Selection) -> Mapping[str, str]:
    contents = {
        **_formats(one.table),
        "runs.csv": runs_csv(one.section),
        "compute.csv": compute_csv(one.compute),
    }
    if one.table.is_many:
        contents[DOMAINS] = domains_csv(one.section, one.table.spread)
    if one.comparisons:
        contents["paired.md"] = paired_markdown(one.comparisons, selection)
        contents["paired.csv"] = paired_csv(one.comparisons)
    if one.regrets:
        contents["regret.md"] = regret_markdown(one.regrets)
        contents["regret.csv"] = regret_csv(one.regrets)
    if one.fair is not None:
        contents["fair.md"] = fair_markdown(one.fair)
        contents["fair.tex"] = fair_latex(one.fair)
        contents["fair.csv"] = fair_csv(one.fair)
        contents["fair_choices.csv"] = choices_csv(one.fair)
        contents["fair_paired.csv"] = paired_csv(one.fair.comparisons)
    if one.front is not None:
        contents["static_front.csv"] = front_csv(one.front, one.table.spread)
    return contents


def _formats(table: Table) -> Mapping[str, str]:
    return {
        "table.md": to_markdown(table),
        "table.tex": to_latex(table),
        "table.csv": to_csv(table),
    }


def _figures(one: SectionReport, folder: Path) -> tuple[list[DrawnFile], list[Path]]:
    """Draws and writes one figure after the other, so that few are in memory at once."""
    drawn, files = [], []
    for figure in draw_all(one):
        png = image_bytes(figure.figure, "png")
        drawn.append(DrawnFile(figure.name, figure.title, figure.caption, png, figure.alt))
        files.append(_write(folder / f"{figure.name}.png", png))
        files.append(_write(folder / f"{figure.name}.pdf", image_bytes(figure.figure, "pdf")))
    return drawn, files


def _relevant(
    problems: Iterable[Problem], own: Container[Path], data: str | None
) -> tuple[Problem, ...]:
    """Without the report's `own` folders, which may lie in outputs and are no runs, and without
    other data sets."""
    return tuple(
        problem
        for problem in sorted(problems, key=lambda p: p.path)
        if not (problem.scope == "directory" and problem.path in own)
        and (data is None or problem.run is None or problem.run.data == data)
    )


def _nothing(
    collection: Collection, left_out: Sequence[Problem], outputs: Path, data: str | None
) -> str:
    if left_out:
        return f"{outputs}: no run that the report's rule can take: {clean(left_out[0].reason)}"
    if collection.runs:
        names = ", ".join(sorted({clean(run.data) for run in collection.runs}))
        return f"--data {data}: {outputs} has no finished run of it; there are runs of: {names}"
    advice = "make some with `robustmd train -m method=even,opt seed=0,1`"
    if not collection.problems:
        return f"{outputs}: no runs in it; {advice}"
    first = collection.problems[0]
    where = clean(page.relative(first.path, collection.outputs))
    count = len(collection.problems)
    return (
        f"{outputs}: no finished run among the {count} directories found (first: {where}: "
        f"{clean(first.reason)}); {advice}"
    )


def _write(path: Path, content: str | bytes) -> Path:
    body = content.encode("utf-8") if isinstance(content, str) else content

    def put(stream: IO[bytes]) -> None:
        stream.write(body)

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, put)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); name another folder with --out"
        ) from None
    return path
