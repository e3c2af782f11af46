"""manifest.json of a prepared store: what it was made from, and what belongs in it.

A store is valid only with its manifest, which is written last. Files are recognised by size and
time of change, which costs nothing, and by checksum where these differ.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "manifest.json"
FORMAT = 1
MAX_BYTES = 1 << 20  # a manifest is a few kilobytes; anything large is not one
_ARRAY_NAME = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True)
class FileState:
    """A file as it was when last seen whole: its stat, and the checksum of its content."""

    size: int
    mtime_ns: int
    checksum: str

    def unchanged(self, path: Path) -> bool:
        """Whether size and time of change are still the same. Raises OSError."""
        now = path.stat()
        return (now.st_size, now.st_mtime_ns) == (self.size, self.mtime_ns)

    @classmethod
    def of(cls, path: Path, checksum: str) -> FileState:
        """The file's present state. Raises OSError."""
        now = path.stat()
        return cls(now.st_size, now.st_mtime_ns, checksum)


@dataclass(frozen=True)
class Manifest:
    """key: the store's full name; sources: by file name (md5 of the content); arrays: by array
    name, kept in <name>.npy (`array_sha256` of the values)."""

    key: str
    sources: dict[str, FileState]
    arrays: dict[str, FileState]

    def write(self, folder: Path) -> None:
        """Write it to `folder` so that it is there whole or not at all. Raises OSError."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1)
        partial = folder / f"{FILE}.{os.getpid()}.part"
        with partial.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(folder / FILE)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Raises FileNotFoundError without one, ValueError if it is not a manifest, OSError."""
        with (folder / FILE).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        try:
            if len(raw) > MAX_BYTES:
                raise ValueError("too large")
            content = json.loads(raw)
            if content["format"] != FORMAT:
                raise ValueError("of another format")
            manifest = cls(
                str(content["key"]), _states(content["sources"]), _states(content["arrays"])
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a manifest ({error})") from error
        # Array names become file names: nothing outside the folder may be reached through them.
        if not all(_ARRAY_NAME.fullmatch(name) for name in manifest.arrays):
            raise ValueError("with an array name that is none")
        return manifest


def _states(content: dict[str, dict[str, object]]) -> dict[str, FileState]:
    return {
        str(name): FileState(int(s["size"]), int(s["mtime_ns"]), str(s["checksum"]))  # type: ignore[call-overload]
        for name, s in content.items()
    }
