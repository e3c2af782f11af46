"""Run records to pass on: what a report reads of finished runs, without models and predictions."""

from __future__ import annotations

import gzip
import json
import re
from operator import methodcaller
from pathlib import Path

from robustmd.errors import UserError
from robustmd.runs import files
from robustmd.runs.reader import collect
from robustmd.runs.untrusted import Missing, read_bytes

RECORDS = (files.CONFIG, files.SUMMARY, files.ENVIRONMENT)
TABLES = (files.METRICS, files.WEIGHTS, files.MEASURES)


def publish(outputs: Path, to: Path) -> tuple[int, int]:
    """Copy the records of every finished run below `outputs` to the same place below `to`, its
    tables packed with gzip, without the machine's folders: the same bytes whenever it is done.

    Returns:
        How many runs, and how many bytes.

    Raises:
        UserError: there is no folder, or no finished run in it.
        OSError: `to` cannot be written.
    """
    found = collect(outputs)
    if not found.runs:
        raise UserError(f"--publish {to}: {outputs} has no finished run; name a folder with some")
    total = 0
    for run in found.runs:
        folder = to / run.path.relative_to(found.outputs)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in _contents(run.path).items():
            files.write_atomically(folder / name, methodcaller("write", content))
            total += len(content)
    return len(found.runs), total


def _contents(run: Path) -> dict[str, bytes]:
    contents = {name: _placeless(name, read_bytes(run / name)) for name in RECORDS}
    for name in TABLES:
        try:
            packed = gzip.compress(read_bytes(run / name), mtime=0)
        except Missing:  # measures.csv is there where metrics were asked for
            continue
        contents[f"{name}{files.PACKED}"] = packed
    return contents


def _placeless(name: str, content: bytes) -> bytes:
    """Without the folders of the machine that trained, which change no number."""
    if name == files.CONFIG:
        return re.sub(rb"^paths:\n(?:  .*\n)+", b"", content, flags=re.MULTILINE)
    if name == files.ENVIRONMENT:
        environment = {k: v for k, v in json.loads(content).items() if k != "folder"}
        typed = environment.get("overrides", [])
        environment["overrides"] = [one for one in typed if not one.startswith("paths.")]
        return (json.dumps(environment, indent=2, ensure_ascii=False) + "\n").encode()
    return content
