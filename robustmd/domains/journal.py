"""How far a long preparation has come, so that the next one goes on after a cut.

One line for each mark: the array, its rows that had reached the disk, their checksum, and what was
noted about the rows since the mark before. A line that is cut off ends the journal. Nothing is
taken over on a mark's word: whoever goes on compares the checksum with the rows that are there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

FILE = "journal.jsonl"


@dataclass
class Mark:
    """The first `rows` rows of an array, their checksum, and all notes about them."""

    rows: int
    checksum: str
    notes: list[Any] = field(default_factory=list)


class Journal:
    """The marks of one preparation in `folder`.

    sources: name → checksum of what the preparation reads; a journal that was kept for other
        sources holds no mark any more.

    Raises OSError where the disk does.
    """

    def __init__(self, folder: Path, sources: Mapping[str, str]) -> None:
        self._path = folder / FILE
        head = json.dumps({"sources": dict(sources)}, sort_keys=True)
        self._lines = self._kept(head) or [head]
        self._rewrite()

    @property
    def is_new(self) -> bool:
        """Whether it holds no mark."""
        return len(self._lines) == 1

    def mark(self, array: str) -> Mark | None:
        """The last mark of an array; None where it is to be begun."""
        last = None
        for line in self._lines[1:]:
            entry = json.loads(line)
            if entry["array"] != array:
                continue
            notes = (last.notes if last and entry["rows"] else []) + entry["notes"]
            last = Mark(entry["rows"], entry["checksum"], notes)
        return last if last and last.rows else None

    def add(self, array: str, mark: Mark) -> None:
        """Note a mark, with the notes since the mark before; 0 rows: the array is begun anew."""
        entry = {
            "array": array,
            "rows": mark.rows,
            "checksum": mark.checksum,
            "notes": mark.notes,
        }
        self._lines.append(json.dumps(entry))
        with self._path.open("a", encoding="ascii") as file:
            file.write(self._lines[-1] + "\n")
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> None:
        """The preparation is done."""
        self._path.unlink()

    def _kept(self, head: str) -> list[str]:
        """The whole lines of a journal of the same sources."""
        if not self._path.exists():
            return []
        lines = self._path.read_text("ascii", errors="replace").split("\n")[:-1]
        if lines[:1] != [head]:
            return []
        return [head, *takewhile(_is_entry, lines[1:])]

    def _rewrite(self) -> None:
        whole = self._path.with_suffix(".part")
        with whole.open("w", encoding="ascii") as file:
            file.write("\n".join([*self._lines, ""]))
            file.flush()
            os.fsync(file.fileno())
        whole.replace(self._path)


def _is_entry(line: str) -> bool:
    try:
        entry = json.loads(line)
        kinds = {"array": str, "rows": int, "checksum": str, "notes": list}
        return all(isinstance(entry[key], kind) for key, kind in kinds.items())
    except (ValueError, KeyError, TypeError):
        return False
