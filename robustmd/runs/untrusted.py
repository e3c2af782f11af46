"""Bytes of a run directory, read as data: whatever they are, they run nothing and hang nothing.

A run directory may be half-written, edited by hand or not ours at all. Every function here either
returns plain Python values or raises `Unreadable` with a reason fit for a list; nothing else.

The YAML that is read is what runs write: mappings, lists, text, numbers, true and false, null. The
whole language has more: dates, numbers in base 60 (1:30 is 90), tags that name types, and aliases
by which few bytes unfold into endlessly many. In a config.yaml of ours none of it stands.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from robustmd.runs import files

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 64 * 2**20  # a metrics.csv of 4 domains and 200,000 measurements is smaller
LESS = {files.CONFIG: 2**18, files.ENVIRONMENT: 2**20, files.SUMMARY: 2**24, files.EXAMPLES: 2**24}
MAX_INTEGER = 2**53  # exact in int64 and float64 alike
MAX_DEPTH = 20  # of lists and mappings in one another; a run of ours has six


class Unreadable(Exception):
    """Why a file or directory cannot be used, in one line."""


class Missing(Unreadable):
    """There is no such file."""


def read_bytes(path: Path) -> bytes:
    """All of a file of the run's own; of a table that is there packed alone, what was packed.
    Raises `Unreadable` when it is missing, no plain file or larger than files of its name are."""
    most = LESS.get(path.name, MAX_BYTES)
    try:
        with files.reading(path, most) as stream:
            return stream.read(most)
    except FileNotFoundError:
        packed = path.with_name(path.name + files.PACKED)
        if path.name in files.COLUMNS and packed.is_file():
            return _unpacked(packed, most)
        raise Missing(f"{path.name} is missing") from None
    except OSError as error:
        raise Unreadable(f"{path.name}: {error.strerror}") from None


def _unpacked(path: Path, most: int) -> bytes:
    """No more is unpacked than `most` bytes and one, whatever the file would become."""
    try:
        with files.reading(path, most) as stream:
            content = gzip.GzipFile(fileobj=stream).read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or "is no whole gzip file"
        raise Unreadable(f"{path.name}: {why}") from None
    if len(content) > most:
        raise Unreadable(f"{path.name}: unpacks to more than {most} bytes")
    return content


def read_text(path: Path) -> str:
    """Its text. Raises `Unreadable`, also for what is not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable(f"{path.name} is not UTF-8 text") from None


def read_record(path: Path) -> dict[str, Any]:
    """Mapping of a JSON file, or of a YAML file of plain values. Raises `Unreadable`."""
    text, kind = read_text(path), path.suffix[1:].upper()
    try:
        content = json.loads(text) if kind == "JSON" else _document(text)
        if not isinstance(content, dict):
            raise Unreadable(f"{path.name} holds no mapping")
        _check(content)
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path.name} is not valid JSON from line {error.lineno} on") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" from line {mark.line + 1} on" if mark is not None else ""
        raise Unreadable(f"{path.name} is not valid YAML{where}") from None
    except _Refused as reason:
        raise Unreadable(f"{path.name} {reason}") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{path.name} is not valid {kind}") from None
    return content


def read_table(path: Path, columns: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Rows of a CSV file, each a tuple in the order of `columns` (name -> int, float or str; None:
    those of a file of its name). Raises `Unreadable` with the line of the first fault."""
    columns = columns or files.COLUMNS[path.name]
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        header = next(reader, [])
        missing = [name for name in columns if name not in header]
        if missing:
            raise Unreadable(f"{path.name} has no column {', '.join(missing)}")
        places = [(header.index(name), _PARSERS[kind]) for name, kind in columns.items()]
        return [tuple(parse(line[i]) for i, parse in places) for line in reader if line]
    except (ValueError, IndexError, csv.Error):
        where = f"{path.name} line {reader.line_num}"
        raise Unreadable(f"{where} is not a row of {','.join(columns)}") from None


def read_frame(path: Path) -> pd.DataFrame:
    """The same rows as a DataFrame."""
    import pandas as pd  # noqa: PLC0415 - `robustmd runs` needs none

    return pd.DataFrame(read_table(path), columns=list(files.COLUMNS[path.name]))


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) > MAX_INTEGER:
        raise ValueError(text)
    return value


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    int: _integer,
    float: float,
    float | None: lambda text: float(text) if text else None,
    str: str,
}


class _Refused(Exception):
    """What no run writes; the words go on after the file's name."""


def _check(value: object, levels: int = MAX_DEPTH) -> None:
    """Raises for what nothing that works with the value should have to think of."""
    if isinstance(value, dict | list):
        if levels == 0:
            raise _Refused(f"is nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            raise _Refused("has a key that is no text")
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(inner, levels - 1)
    elif isinstance(value, int) and abs(value) > 2**64:  # float() of more may raise
        raise _Refused("has a number that is too large")
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise _Refused("has half of a character") from None


# libyaml is ten times as fast where PyYAML was built with it.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads the scalars that runs write, and takes all others for text."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _form in {
    "null": r"~|null|",
    "bool": r"true|false",
    "int": r"[-+]?(0|[1-9]\d*)",
    "float": r"[-+]?(\d+\.\d*|\.\d+)(e[-+]?\d+)?|[-+]?\.inf|\.nan",
}.items():
    _is_one = re.compile(f"({_form})$", re.ASCII | re.IGNORECASE)
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _is_one, None)


def _document(text: str) -> Any:
    """The value of a YAML document; its events are looked at before anything is made of them."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise _Refused("has YAML aliases, which a run never writes")
        if getattr(event, "tag", None) is not None:
            raise _Refused("has YAML tags, which a run never writes")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _Refused(f"is nested more than {MAX_DEPTH} deep")
    return yaml.load(text, Loader=_Loader)
