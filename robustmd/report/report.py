"""From a folder of runs to a folder with tables, figures and pages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from robustmd.errors import UserError
from robustmd.report.content import Report, SectionReport, make_report, table_files
from robustmd.report.estimate import SpreadKind
from robustmd.report.figures import Drawing, draw_all, image_bytes
from robustmd.report.page import page_html, page_markdown
from robustmd.report.renderers import FILES
from robustmd.report.selection import Selection
from robustmd.report.sheet import Sheet
from robustmd.runs.files import write_atomically


def write_report(
    outputs: Path,
    out: Path,
    data: str | None = None,
    experiment: str | None = None,
    *,
    selection: Selection | None = None,
    spread: SpreadKind = "std",
    baseline: str | None = None,
) -> Report:
    """Writes `<out>/README.md`, `<out>/index.html` and, for each data set, `<out>/<data>/` with the
    tables, the paired differences, the regrets, the compute, runs.csv and every figure that the
    runs allow. Each file is replaced whole; nothing else in `out` is touched.

    Args:
        outputs: folder of run directories.
        out: folder of the report; made where it is not there.
        data: only this data set.
        experiment: only the runs that were made for this preset.
        selection: which measurements the numbers are of, for every row.
        spread: what stands behind ±.
        baseline: the method that the others are compared with; None: the first of even, erm,
            individual that was run.

    Raises:
        UserError: no finished run in `outputs`, none of `baseline`, or `out` cannot be written.
    """
    rule = selection or Selection()
    report = _without_own(
        make_report(
            outputs, out, data, experiment, selection=rule, spread=spread, baseline=baseline
        )
    )
    written: list[Path] = []
    figures: dict[str, list[Drawing]] = {}
    for one in report.sections:
        written += _write_tables(out / one.section.folder, one.sheets)
        figures[one.section.folder] = _draw(one, out / one.section.folder, written)
    for table in report.leave_one_out:
        written += _write_tables(out / table.section.folder, table_files(table))
    write(report.page, page_markdown(report, figures))
    write(report.html, page_html(report, figures))
    return replace(report, files=(report.page, report.html, *written))


def _write_tables(folder: Path, tables: Mapping[str, Sequence[Sheet]]) -> list[Path]:
    """{file: its tables}, each in the format that the file's name ends with."""
    texts = {name: map(FILES[name.rpartition(".")[2]], sheets) for name, sheets in tables.items()}
    return [write(folder / name, "\n".join(parts)) for name, parts in texts.items()]


def _draw(one: SectionReport, folder: Path, written: list[Path]) -> list[Drawing]:
    """Draws and writes one figure after the other, so that few are in memory at once; adds their
    files to `written`."""
    drawn = []
    for made in draw_all(one):
        for kind in ("png", "pdf"):
            content = image_bytes(made.figure, kind)
            written.append(write(folder / f"{made.name}.{kind}", content))
        drawn.append(replace(made, svg=image_bytes(made.figure, "svg")))
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


def _without_own(report: Report) -> Report:
    """The folders of the report may lie in outputs and are no runs that were passed over."""
    whole = report.out.resolve()
    folders = [one.section.folder for one in report.sections]
    folders += [one.section.folder for one in report.leave_one_out]
    own = {whole, *(whole / folder for folder in folders)}
    kept = (one for one in report.problems if one.scope != "directory" or one.path not in own)
    return replace(report, problems=tuple(kept))
