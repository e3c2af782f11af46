"""From a folder of runs to a folder with tables, curves and a page."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from robustmd.errors import UserError
from robustmd.report import curves, page
from robustmd.report.aggregate import Section, sections
from robustmd.report.latex_table import to_latex
from robustmd.report.messages import said
from robustmd.report.names import clean
from robustmd.report.paired import Comparison, comparisons, paired_csv, paired_markdown
from robustmd.report.quantities import table_quantities
from robustmd.report.regret import (
    RegretRow,
    regret_csv,
    regret_markdown,
    regret_rows,
    unreadable_regrets,
)
from robustmd.report.table import Table, build_table, measured_as, to_csv, to_markdown
from robustmd.runs.files import write_atomically
from robustmd.runs.reader import Collection, Problem, collect

PAGE = "README.md"


@dataclass(frozen=True)
class SectionReport:
    """What was made of one data set."""

    section: Section
    table: Table
    comparisons: tuple[Comparison, ...]
    regrets: tuple[RegretRow, ...]


@dataclass(frozen=True)
class ReportResult:
    """A written report: `page` and all `files`, the numbers in it, and what it left out."""

    outputs: Path
    out: Path
    page: Path
    files: tuple[Path, ...]
    sections: tuple[SectionReport, ...]
    problems: tuple[Problem, ...]


def write_report(outputs: Path, out: Path, data: str | None = None) -> ReportResult:
    """Writes `<out>/README.md` and, for each data set, `<out>/<data>/` with table.md, .tex, .csv,
    runs.csv, paired.md, .csv, regret.md, .csv and worst_case_training_loss.png, .pdf. Each file is
    replaced whole.

    Args:
        outputs: folder of run directories.
        out: folder of the report; made where it is not there.
        data: only this data set.

    Raises:
        UserError: no finished run in `outputs`, or `out` cannot be written.
    """
    collection = collect(outputs)
    chosen = [run for run in collection.runs if data is None or run.data == data]
    found, twice = sections(chosen)
    if not found:
        raise UserError(_nothing(collection, outputs, data))
    unreadable = [problem for section in found for problem in unreadable_regrets(section)]
    problems = _relevant((*collection.problems, *twice, *unreadable), out, data)
    made = tuple(SectionReport(s, build_table(s), comparisons(s), regret_rows(s)) for s in found)
    written: list[Path] = []
    for one in made:
        for name, content in _section_contents(one).items():
            written.append(_write(out / one.section.folder / name, content))
    text = _page(made, problems, collection.outputs)
    page_path = _write(out / PAGE, text)
    files = (page_path, *written)
    return ReportResult(collection.outputs, out, page_path, files, made, problems)


def _section_contents(one: SectionReport) -> dict[str, str | bytes]:
    figure = curves.draw(one.section)
    contents: dict[str, str | bytes] = {
        "table.md": to_markdown(one.table),
        "table.tex": to_latex(one.table),
        "table.csv": to_csv(one.table),
        "runs.csv": runs_csv(one.section),
    }
    if one.comparisons:
        contents["paired.md"] = paired_markdown(one.comparisons)
        contents["paired.csv"] = paired_csv(one.comparisons)
    if one.regrets:
        contents["regret.md"] = regret_markdown(one.regrets)
        contents["regret.csv"] = regret_csv(one.regrets)
    for kind in ("png", "pdf"):
        contents[f"{curves.NAME}.{kind}"] = curves.image_bytes(figure, kind)
    return contents


def runs_csv(section: Section) -> str:
    """Every run behind the table, with its values: from a mean back to metrics.csv."""
    columns = table_quantities(section.domains)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [clean(column.name) for column in columns]
    writer.writerow(["path", "method", "seed", *names, "warnings"])
    for group in section.groups:
        for label, quantities in measured_as(group, columns):
            for run in group.runs:
                path = clean(page.relative(run.path, run.root))
                warned = clean("; ".join(said(run, "warnings")))
                writer.writerow([path, label, run.seed, *(q.of(run) for q in quantities), warned])
    return out.getvalue()


def _page(made: Iterable[SectionReport], problems: tuple[Problem, ...], outputs: Path) -> str:
    each = [
        page.section_markdown(one.section, one.table, one.comparisons, one.regrets) for one in made
    ]
    return "\n".join(["# Report\n", *each, page.left_out_markdown(problems, outputs)])


def _relevant(problems: Iterable[Problem], out: Path, data: str | None) -> tuple[Problem, ...]:
    """Without the report's own folder, which may lie in outputs, and without other data sets."""
    own = out.resolve()
    return tuple(
        problem
        for problem in sorted(problems, key=lambda p: p.path)
        if not problem.path.is_relative_to(own)
        and (data is None or problem.run is None or problem.run.data == data)
    )


def _nothing(collection: Collection, outputs: Path, data: str | None) -> str:
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
