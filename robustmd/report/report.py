"""From a folder of runs to a folder with tables, figures and pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustmd.errors import UserError
from robustmd.report.compare import TreeComparison, compare_markdown, compare_trees, pairings_sheet
from robustmd.report.content import (
    DrawnFile,
    Report,
    SectionReport,
    make_report,
    table_files,
)
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures import draw_all, image_bytes, in_parts, shown_size
from robustmd.report.manifest import LIST, list_text, remove_stale
from robustmd.report.page import page_html, page_markdown
from robustmd.report.renderers import FILES, to_csv
from robustmd.report.selection import Selection
from robustmd.report.sheet import Sheet
from robustmd.runs.files import write_atomically
from robustmd.runs.reader import Problem


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
    figures: dict[str, list[DrawnFile]] = {}
    for one in report.sections:
        written += _write_tables(out / one.section.folder, one.sheets)
        figures[one.section.folder], images = _figures(one, out / one.section.folder)
        written += images
    for table in report.leave_one_out:
        written += _write_tables(out / table.section.folder, table_files(table))
    page_path = _write(out / "README.md", page_markdown(report, figures))
    html_path = _write(out / "index.html", page_html(report, figures))
    every = (page_path, html_path, *written)
    remove_stale(out, every)
    _write(out / LIST, list_text(out, every))
    return Written(report, page_path, html_path, every)


def write_comparison(
    a: Path, b: Path, out: Path, selection: Selection, data: str | None = None
) -> tuple[TreeComparison, tuple[Path, ...]]:
    """Writes `<out>/compare.md` and `<out>/compare.csv`: the runs of `a` against those of `b`.
    Raises `UserError` as `compare_trees`, and where `out` cannot be written."""
    found = compare_trees(a, b, selection, data)
    csv = to_csv(pairings_sheet(found.pairings))
    contents = {"compare.md": compare_markdown(found), "compare.csv": csv}
    return found, tuple(_write(out / name, text) for name, text in contents.items())


def _write_tables(folder: Path, tables: Mapping[str, Sequence[Sheet]]) -> list[Path]:
    """{file: its tables}, each in the format that the file's name ends with."""
    texts = {name: map(FILES[name.rpartition(".")[2]], sheets) for name, sheets in tables.items()}
    return [_write(folder / name, "\n".join(parts)) for name, parts in texts.items()]


def _figures(one: SectionReport, folder: Path) -> tuple[list[DrawnFile], list[Path]]:
    """Draws and writes one figure after the other, so that few are in memory at once."""
    drawn, files = [], []
    for figure in draw_all(one):
        png = image_bytes(figure.figure, "png")
        words = (figure.name, figure.title, figure.caption, figure.alt)
        files.append(_write(folder / f"{figure.name}.png", png))
        files.append(_write(folder / f"{figure.name}.pdf", image_bytes(figure.figure, "pdf")))
        size = shown_size(figure.figure)
        own = in_parts(figure.figure, f"{one.section.folder}-{figure.name}")
        drawn.append(DrawnFile(*words, png, *size, own))
    return drawn, files


def _write(path: Path, content: str | bytes) -> Path:
    body = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda stream: stream.write(body))
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); name another folder with --out"
        ) from None
    return path
