"""A study's records in a few tables, to pass on: what `robustmd runs --publish` writes.

runs.jsonl.gz has a line for each run: its folder and its records. metrics.csv.gz, weights.csv.gz
and measures.csv.gz have the rows of all runs, each with the run's folder before it. Every reader
reads a run of them as if its files lay in that folder.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from operator import methodcaller
from pathlib import Path, PurePosixPath
from typing import Any

from robustmd.runs import files

RUNS = "runs.jsonl.gz"
PACKED = ".gz"
LARGEST = 2**30  # bytes that one of the tables may unpack to

Records = Mapping[str, Mapping[str, Any]]  # the name of a record's file -> what it holds


class Study:
    """The tables in a folder. Raises OSError or ValueError: they cannot be read, or are none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[str, dict[str, list[list[str]]]] = {}

    @cached_property
    def records(self) -> dict[str, Records]:
        """Those of each run, by its folder below the study's."""
        found = {}
        for line in _unpacked(self._folder / RUNS).splitlines():
            run = json.loads(line)
            place = run["run"]
            parts = PurePosixPath(place).parts
            if ".." in parts or PurePosixPath(place).is_absolute() or not place.isprintable():
                raise ValueError(f"{place!r} is no folder below it")
            found[place] = run["records"]
        return found

    def table(self, name: str, place: str) -> bytes:
        """A run's own rows of metrics.csv, weights.csv or measures.csv, as the run wrote them.
        Raises FileNotFoundError: it has none."""
        if name not in self._tables:
            self._tables[name] = self._read(name)
        rows = self._tables[name].get(place)
        if rows is None:
            raise FileNotFoundError
        return _written([files.COLUMNS[name], *rows])

    def _read(self, name: str) -> dict[str, list[list[str]]]:
        path = self._folder / (name + PACKED)
        rows = csv.reader(io.StringIO(_unpacked(path).decode("utf-8"), newline=""))
        if next(rows) != ["run", *files.COLUMNS[name]]:
            raise ValueError(f"{path.name} has other columns than {', '.join(files.COLUMNS[name])}")
        found: dict[str, list[list[str]]] = {}
        for place, *row in rows:
            found.setdefault(place, []).append(row)
        return found


def study_of(path: Path) -> tuple[Study, str] | None:
    """The study that the run in `path` is of, and its folder there; None: it is of none, but a
    folder of its own."""
    if path.is_dir():
        return None
    for folder in path.parents:
        table = folder / RUNS
        if table.is_file():
            return study_in(folder), path.relative_to(folder).as_posix()
    return None


def study_in(folder: Path) -> Study:
    """The study in a folder that has runs.jsonl.gz."""
    return _study(folder, (folder / RUNS).stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _study(folder: Path, _: int) -> Study:
    return Study(folder)


def write_study(folder: Path, runs: Iterable[tuple[str, Records, Mapping[str, bytes]]]) -> int:
    """Write the tables of these runs: (folder, records, {name of a CSV file: its bytes}) of each.

    The same runs give the same bytes. Returns how many bytes. Raises OSError.
    """
    lines: list[str] = []
    tables: dict[str, list[list[str]]] = {}
    for place, records, csv_files in runs:
        lines.append(json.dumps({"run": place, "records": records}, ensure_ascii=False))
        for name, content in csv_files.items():
            rows = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
            table = tables.setdefault(name + PACKED, [["run", *files.COLUMNS[name]]])
            table += [[place, *(row[column] for column in files.COLUMNS[name])] for row in rows]
    contents = {RUNS: "".join(f"{line}\n" for line in lines).encode()}
    contents |= {name: _written(rows) for name, rows in tables.items()}
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, content in contents.items():
        packed = gzip.compress(content, mtime=0)
        files.write_atomically(folder / name, methodcaller("write", packed))
        total += len(packed)
    return total


def _written(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _unpacked(path: Path) -> bytes:
    with files.reading(path, LARGEST) as stream:
        content = gzip.GzipFile(fileobj=stream).read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path.name} unpacks to more than {LARGEST} bytes")
    return content
