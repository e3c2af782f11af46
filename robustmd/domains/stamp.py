"""What tells a file from what it was, at the price of one look at it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import NamedTuple


class Stamp(NamedTuple):
    """size [bytes]; mtime_ns: its time of change, which anybody can set; ctime_ns: when the file
    system last noted a change, which nobody can. Both in ns. On Windows ctime_ns says less: it is
    when the file was made."""

    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The file's present one. Raises OSError."""
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


NO_FILE = Stamp(0, 0, 0)


def stamp_of(path: Path) -> Stamp:
    """A file's stamp; `NO_FILE` for what is no file or leads nowhere."""
    try:
        return Stamp.of(path) if stat.S_ISREG(path.stat().st_mode) else NO_FILE
    except (OSError, ValueError):  # ValueError: a null character
        return NO_FILE
