"""The files of a run directory, read as data.

A run may be half-written, edited by hand or somebody else's. Every function here returns plain
Python values, or raises `Unreadable` with the reason in one line, whatever the bytes are.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from robustmd.runs import files
from robustmd.runs.published import study_of

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 64 * 2**20  # a metrics.csv of 4 domains and 200,000 measurements is smaller
MAX_BYTES_OF = {files.CONFIG: 2**18, files.ENVIRONMENT: 2**20, files.SUMMARY: 2**24}
MAX_INTEGER = 2**63 - 1  # of int64; float() of far larger ones may raise
MAX_DEPTH = 20  # of lists and mappings inside one another; a run of ours has six
LONGEST_REASON = 200  # characters; a reason may quote the file


class Unreadable(Exception):
    """Why a file or directory cannot be used, in one line."""


class Missing(Unreadable):
    """There is no such file."""


@contextmanager
def _unreadable_with_reason(path: Path) -> Iterator[None]:
    """Within it every error is an `Unreadable` that names the file."""
    try:
        yield
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Missing(f"{path.name} is missing") from None
    except Exception as error:  # MemoryError and RecursionError too
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        one_line = " ".join(reason.split())[:LONGEST_REASON]
        raise Unreadable(f"{path.name} cannot be read: {one_line}") from None


def read_bytes(path: Path) -> bytes:
    """The content of a plain file, or of a table of a published run."""
    largest = MAX_BYTES_OF.get(path.name, MAX_BYTES)
    with _unreadable_with_reason(path):
        if path.name in files.COLUMNS and (found := study_of(path.parent)):
            study, place = found
            return study.table(path.name, place)
        with files.reading(path, largest) as stream:
            return stream.read(largest)


def read_record(path: Path) -> dict[str, Any]:
    """The mapping that a JSON or YAML file holds."""
    with _unreadable_with_reason(path):
        if found := study_of(path.parent):
            study, place = found
            record: Any = study.records[place][path.name]
        else:
            text = read_bytes(path).decode("utf-8")
            record = json.loads(text) if path.suffix == ".json" else yaml.load(text, _Loader)
        if not isinstance(record, dict):
            raise ValueError("it holds no mapping")
        _check(record)
        return record


def read_table(path: Path, columns: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a CSV file, each a tuple in the order of `columns` ({name: int, float or str};
    None: those of a file of its name)."""
    columns = columns or files.COLUMNS[path.name]
    content = read_bytes(path)
    with _unreadable_with_reason(path):
        reader = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
        header = next(reader, [])
        missing = [name for name in columns if name not in header]
        if missing:
            raise ValueError(f"it has no column {', '.join(missing)}")
        places = [(header.index(name), _PARSERS[kind]) for name, kind in columns.items()]
        try:
            return [tuple(parse(line[i]) for i, parse in places) for line in reader if line]
        except (ValueError, IndexError):
            where = f"line {reader.line_num}"
            raise ValueError(f"{where} is not a row of {','.join(columns)}") from None


def read_frame(path: Path) -> pd.DataFrame:
    """The same rows as a DataFrame."""
    import pandas as pd  # noqa: PLC0415 - `robustmd runs` does without

    return pd.DataFrame(read_table(path), columns=list(files.COLUMNS[path.name]))


def _integer(given: str | int) -> int:
    value = int(given)
    if abs(value) > MAX_INTEGER:
        raise ValueError("a number in it is too large")
    return value


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    int: _integer,
    float: float,
    float | None: lambda text: float(text) if text else None,
    str: str,
}


def _check(value: object, levels: int = MAX_DEPTH) -> None:
    """Raises ValueError for what no run writes."""
    if levels < 0:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        value.encode("utf-8")  # fails for half a character
    elif isinstance(value, int):
        _integer(value)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, levels - 1)
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        _check([*value, *value.values()], levels)
    elif value is not None and not isinstance(value, float):
        raise ValueError(f"it holds what no run writes: {value!r:.80}")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML's safe types without aliases, by which few bytes become endlessly many."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node in self.constructed_objects or node in self.recursive_objects:
            raise ValueError("it has YAML aliases, which no run writes")
        return super().construct_object(node, deep)
