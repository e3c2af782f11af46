"""How far a sweep came: a file beside its runs, so that `robustmd runs` says what never began."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from robustmd.errors import printable
from robustmd.runs import files
from robustmd.runs.rerun import command
from robustmd.runs.untrusted import Unreadable, read_record

FOLDER = ".sweeps"  # below outputs


class SweepNote:
    """A sweep's command and how many of its runs have begun; removed as soon as all have.

    Args:
        outputs: `paths.outputs`.
        typed: the arguments of `robustmd train`.
        runs: how many there are.
    """

    def __init__(self, outputs: Path, typed: Sequence[str], runs: int) -> None:
        self._command, self._runs, self._begun = command(["-m", *typed]), runs, 0
        name = hashlib.sha256(self._command.encode()).hexdigest()[:8]
        self._path = outputs / FOLDER / f"{name}.json"

    def add_run(self) -> None:
        """One more run begins."""
        self._begun += 1
        content = {"command": self._command, "runs": self._runs, "begun": self._begun}
        text = json.dumps(content, indent=2) + "\n"
        with suppress(OSError):  # the runs themselves will say what is wrong with the folder
            if self._begun == self._runs:
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()  # unless another sweep's note is there
            else:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                files.write_atomically(self._path, lambda stream: stream.write(text.encode()))


def runs_to_begin(outputs: Path) -> list[str]:
    """A line for each sweep below `outputs` of which some runs have not begun."""
    lines = []
    for path in sorted((outputs / FOLDER).glob("*.json")):
        try:
            note = read_record(path)
            left = note["runs"] - note["begun"]
            typed = printable(str(note["command"]))
        except (Unreadable, KeyError, TypeError):
            continue  # somebody else's file
        lines.append(f"{left} of {note['runs']} runs of a sweep have not begun: {typed}")
    return lines
