"""What an earlier report left in the folder of this one: known by its list, removed where it is
still as it was written."""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from robustmd.runs.untrusted import Unreadable, read_text

LIST = "files.sha256"  # as `sha256sum` writes it: anybody can check a report that was passed on
_LINE = re.compile(r"([0-9a-f]{64})  ((?:\w[\w.-]*/)?\w[\w.-]*)", re.ASCII)


def earlier_files(out: Path) -> Mapping[str, str]:
    """{name below `out`: sha256} of the report that is there; {} where there is none. A list that
    somebody else wrote can name nothing outside `out`."""
    try:
        text = read_text(out / LIST)
    except Unreadable:
        return {}
    return {found[2]: found[1] for line in text.splitlines() if (found := _LINE.fullmatch(line))}


def own_folders(out: Path, folders: Iterable[str]) -> frozenset[Path]:
    """The folders that a report with these sections has, or an earlier one had: no runs of the
    user's are passed over in them."""
    names = {name.partition("/")[0] for name in earlier_files(out) if "/" in name}
    whole = out.resolve()
    return frozenset((whole, *(whole / name for name in (*names, *folders))))


def list_text(out: Path, written: Iterable[Path]) -> str:
    """The content of `LIST` for these files of `out`."""
    names = sorted((path.relative_to(out).as_posix(), path) for path in written)
    return "".join(f"{_digest(path)}  {name}\n" for name, path in names)


def remove_stale(out: Path, written: Iterable[Path]) -> None:
    """Removes what the earlier report wrote and this one did not, and folders that are empty then.
    A file that was changed since, or that lies behind a symbolic link, stays."""
    kept = {path.relative_to(out).as_posix() for path in written}
    for name, digest in earlier_files(out).items():
        path = out / name
        with contextlib.suppress(OSError):
            linked = path.is_symlink() or (path.parent != out and path.parent.is_symlink())
            if name not in kept and path.is_file() and not linked and _digest(path) == digest:
                path.unlink()
                if path.parent != out:
                    path.parent.rmdir()  # only where nothing else is in it


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
