"""From a folder of runs to a folder with tables, figures and pages. What an earlier report left
there is known by its list, and removed where it is still as it was written."""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
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
from robustmd.runs.untrusted import Unreadable, read_text

LIST = "files.sha256"  # as `sha256sum` writes it: anybody can check a report that was passed on
_LINE = re.compile(r"([0-9a-f]{64})  ((?:\w[\w.-]*/)?\w[\w.-]*)", re.ASCII)


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
    runs allow. Each file is replaced whole; what an earlier report wrote in `out` and this
    one does not is removed, and nothing else there is touched.

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
    rule, earlier = selection or Selection(), _earlier_files(out)
    report = make_report(
        outputs, out, data, experiment, selection=rule, spread=spread, baseline=baseline
    )
    report = _without_own(report, earlier)
    written: list[Path] = []
    figures: dict[str, list[Drawing]] = {}
    for one in report.sections:
        written += _write_tables(out / one.section.folder, one.sheets)
        figures[one.section.folder] = _draw(one, out / one.section.folder, written)
    for table in report.leave_one_out:
        written += _write_tables(out / table.section.folder, table_files(table))
    write(report.page, page_markdown(report, figures))
    write(report.html, page_html(report, figures))
    every = (report.page, report.html, *written)
    files = {path.relative_to(out).as_posix(): path for path in every}
    _remove_stale(out, earlier, files)
    write(out / LIST, "".join(f"{_digest(files[name])}  {name}\n" for name in sorted(files)))
    return replace(report, files=every)


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


def _earlier_files(out: Path) -> Mapping[str, str]:
    """{name below `out`: sha256} of the report that is there; {} where there is none. A list that
    somebody else wrote can name nothing outside `out`."""
    try:
        text = read_text(out / LIST)
    except Unreadable:
        return {}
    return {found[2]: found[1] for line in text.splitlines() if (found := _LINE.fullmatch(line))}


def _without_own(report: Report, earlier: Iterable[str]) -> Report:
    """The folders that this report has, or an earlier one had, may lie in outputs and are no runs
    that were passed over."""
    names = {name.partition("/")[0] for name in earlier if "/" in name}
    names |= {one.section.folder for one in report.sections}
    whole = report.out.resolve()
    own = {whole, *(whole / name for name in names)}
    kept = (one for one in report.problems if one.scope != "directory" or one.path not in own)
    return replace(report, problems=tuple(kept))


def _remove_stale(out: Path, earlier: Mapping[str, str], kept: Iterable[str]) -> None:
    """Removes what the earlier report wrote and this one did not, and folders that are empty then.
    A file that was changed since, or that lies behind a symbolic link, stays."""
    for name in earlier.keys() - set(kept):
        path = out / name
        with contextlib.suppress(OSError):
            linked = path.is_symlink() or (path.parent != out and path.parent.is_symlink())
            if path.is_file() and not linked and _digest(path) == earlier[name]:
                path.unlink()
                if path.parent != out:
                    path.parent.rmdir()  # only where nothing else is in it


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
