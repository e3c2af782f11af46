"""manifest.json of a prepared store: what it was made from, and what belongs in it.

A store is valid only with its manifest, which is written last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustmd.domains.checksums import FileState, Stamp
from robustmd.runs.files import write_atomically

FILE = "manifest.json"
FORMAT = 1
_ARRAY_NAME = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True)
class Manifest:
    """key, content: of the recipe; sources: by file name (md5 of the content); arrays: by array
    name, kept in <name>.npy (`array_sha256` of the values)."""

    key: str
    content: str
    sources: dict[str, FileState]
    arrays: dict[str, FileState]

    def write(self, folder: Path) -> None:
        """Write it to `folder` so that it is there whole or not at all. Raises OSError."""
        content = {
            "format": FORMAT,
            "key": self.key,
            "content": self.content,
            "sources": {name: _plain(state) for name, state in self.sources.items()},
            "arrays": {name: _plain(state) for name, state in self.arrays.items()},
        }
        text = json.dumps(content, indent=1) + "\n"
        write_atomically(folder / FILE, lambda stream: stream.write(text.encode()))

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Raises FileNotFoundError without one, ValueError if it is not a manifest, OSError."""
        try:
            content = json.loads((folder / FILE).read_bytes())
            if content["format"] != FORMAT:
                raise ValueError("of another format")
            manifest = cls(
                str(content["key"]),
                str(content.get("content", "")),
                _states(content["sources"]),
                _states(content["arrays"]),
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a manifest ({error})") from error
        # Array names become file names: nothing outside the folder may be reached through them.
        if not all(_ARRAY_NAME.fullmatch(name) for name in manifest.arrays):
            raise ValueError("with an array name that is none")
        return manifest


def _plain(state: FileState) -> dict[str, object]:
    return {**state.stamp._asdict(), "checksum": state.checksum}


def _states(content: dict[str, dict[str, Any]]) -> dict[str, FileState]:
    """A store from before ctime_ns was kept has a stamp that no file has: its checksums decide."""
    return {
        str(name): FileState(
            Stamp(int(s["size"]), int(s["mtime_ns"]), int(s.get("ctime_ns", 0))), str(s["checksum"])
        )
        for name, s in content.items()
    }
