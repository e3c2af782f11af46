"""Bytes of a run directory, read as data: whatever they are, they run nothing and hang nothing.

A run directory may be half-written, edited by hand or not ours at all. Every function here either
returns plain Python values or raises `Unreadable` with a reason fit for a list; nothing else.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from robustmd.runs import files
from robustmd.runs.plain_yaml import plain_value

MAX_BYTES = 64 * 2**20  # a metrics.csv of 4 domains and 200,000 measurements is smaller
LESS = {files.CONFIG: 2**18, files.ENVIRONMENT: 2**20, files.SUMMARY: 2**24, files.EXAMPLES: 2**24}
MAX_INTEGER = 2**53  # exact in int64 and float64 alike
MAX_DEPTH = 20  # of lists and mappings in one another; a run of ours has six


class Unreadable(Exception):
    """Why a file or directory cannot be used, in one line."""


class Missing(Unreadable):
    """There is no such file."""


def read_bytes(path: Path) -> bytes:
    """All of a file of the run's own.

    Raises `Unreadable` when it is missing, no plain file (a link is not followed, a pipe would
    block the report) or larger than files of its name are.
    """
    most = LESS.get(path.name, MAX_BYTES)
    try:
        with files.reading(path) as stream:
            content = stream.read(most + 1)
    except FileNotFoundError:
        raise Missing(f"{path.name} is missing") from None
    except OSError as error:
        raise Unreadable(f"{path.name}: {error.strerror}") from None
    if len(content) > most:
        raise Unreadable(f"{path.name} has more than {most} bytes")
    return content


def read_text(path: Path) -> str:
    """Its text. Raises `Unreadable`, also for what is not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable(f"{path.name} is not UTF-8 text") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Mapping of a YAML file, of plain values only: see `plain_value`. Raises `Unreadable`."""
    text = read_text(path)
    try:
        return _checked(plain_value(text, MAX_DEPTH), path)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" from line {mark.line + 1} on" if mark is not None else ""
        raise Unreadable(f"{path.name} is not valid YAML{where}") from None
    except ValueError as error:
        raise Unreadable(f"{path.name} {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Mapping of a JSON file. Raises `Unreadable`."""
    text = read_text(path)
    try:
        return _checked(json.loads(text), path)
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path.name} is not valid JSON from line {error.lineno} on") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{path.name} is not valid JSON") from None


def read_table(path: Path, columns: Mapping[str, type]) -> list[tuple[Any, ...]]:
    """Rows of a CSV file, each a tuple in the order of `columns` (name -> int, float or str).

    Columns not asked for are ignored. Raises `Unreadable` with the line of the first fault.
    """
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


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) > MAX_INTEGER:
        raise ValueError(text)
    return value


_PARSERS: Mapping[type, Callable[[str], Any]] = {int: _integer, float: float, str: str}


def _checked(content: object, path: Path) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise Unreadable(f"{path.name} holds no mapping")
    _check(content, path, MAX_DEPTH)
    return content


def _check(value: object, path: Path, levels: int) -> None:
    """Raises `Unreadable` for what nothing that works with the value should have to think of."""
    if isinstance(value, dict | list):
        if levels == 0:
            raise Unreadable(f"{path.name} is nested more than {MAX_DEPTH} deep")
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(inner, path, levels - 1)
    elif isinstance(value, int) and abs(value) > 2**64:  # float() of more may raise
        raise Unreadable(f"{path.name} has a number that is too large")
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Unreadable(f"{path.name} has half of a character") from None
