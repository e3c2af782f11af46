"""The files of a study: made before the work, written after it."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from robustmd.errors import UserError
from robustmd.report.figures import image_bytes

Contents = Mapping[str, str | bytes]
"""File name to content."""


def make_folder(out: Path, name: str) -> Path:
    """`<out>/<name>`, made where it is not there. Raises UserError."""
    folder = out / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written ({error.strerror})") from error
    return folder


def write_files(folder: Path, contents: Contents) -> None:
    """Writes each file. Raises UserError."""
    for name, content in contents.items():
        try:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            message = f"{folder / name}: cannot be written ({error.strerror})"
            raise UserError(message) from error


def images(name: str, figure: Figure) -> Contents:
    """The figure as `<name>.png` and `<name>.pdf`."""
    return {f"{name}.{kind}": image_bytes(figure, kind) for kind in ("png", "pdf")}


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file; None is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def markdown_table(head: Sequence[str], align: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table; `align` is "---" or "---:" for each column."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, align, *rows))


def signed(value: float, decimals: int) -> str:
    """ "−0.500", with a minus sign."""
    return f"{value:.{decimals}f}".replace("-", "−")
