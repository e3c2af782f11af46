"""Bytes of a run directory, read as data: whatever they are, they run nothing and hang nothing.

A run directory may be half-written, edited by hand or not ours at all. Every function here either
returns plain Python values or raises `Unreadable` with a reason fit for a list; nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import yaml

if TYPE_CHECKING:
    import numpy as np

MAX_BYTES = 64 * 2**20  # a metrics.csv of 4 domains and 200,000 measurements is smaller
MAX_INTEGER = 2**53  # exact in int64 and float64 alike

# Same result as yaml.safe_load; libyaml is ten times as fast where PyYAML was built with it.
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(Exception):
    """Why a file or directory cannot be used, in one line."""


def read_text(path: Path, root: Path) -> str:
    """Text of a regular file that lies below `root`; a symbolic link out of the tree is refused.

    Raises `Unreadable` when the file is missing, not regular (a pipe would block the report),
    larger than `MAX_BYTES`, not UTF-8, or elsewhere. `root` must be resolved.
    """
    try:
        _check_regular(path, root)
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unreadable(f"{path.name} is not UTF-8 text") from None
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from None


def _check_regular(path: Path, root: Path) -> None:
    """Raises `Unreadable` for whatever is no plain file of bearable size below `root`."""
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise Unreadable(f"{path.name} is a symbolic link out of the tree: not followed")
        found = path.stat()
    except FileNotFoundError:
        raise Unreadable(f"{path.name} is missing") from None
    except (OSError, RuntimeError) as error:  # Python < 3.13: RuntimeError for a loop of links
        detail = getattr(error, "strerror", None) or "a loop of symbolic links"
        raise Unreadable(f"{path.name} cannot be read: {detail}") from None
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(f"{path.name} is not a file")
    if found.st_size > MAX_BYTES:
        raise Unreadable(f"{path.name} has {found.st_size} bytes, more than {MAX_BYTES}")


def read_yaml(path: Path, root: Path) -> dict[str, Any]:
    """Mapping of a YAML file, by the safe loader; aliases are refused, since few bytes can unfold
    into endlessly many. Raises `Unreadable`."""
    text = read_text(path, root)
    try:
        if "*" in text and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text)):
            raise Unreadable(f"{path.name} has YAML aliases, which a run never writes")
        content = yaml.load(text, Loader=_YAML_LOADER)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError) as error:
        raise Unreadable(f"{path.name} is not valid YAML{_yaml_line(error)}") from None
    return _as_mapping(content, path)


def read_json(path: Path, root: Path) -> dict[str, Any]:
    """Mapping of a JSON file. Raises `Unreadable`."""
    text = read_text(path, root)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path.name} is not valid JSON from line {error.lineno} on") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{path.name} is not valid JSON") from None
    return _as_mapping(content, path)


def read_table(path: Path, root: Path, columns: Mapping[str, type]) -> list[tuple[Any, ...]]:
    """Rows of a CSV file, each a tuple in the order of `columns` (name -> int, float or str).

    Columns not asked for are ignored. Raises `Unreadable` with the line of the first fault.
    """
    reader = csv.reader(io.StringIO(read_text(path, root), newline=""))
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


def read_array(path: Path, root: Path, name: str) -> np.ndarray:
    """One array of an .npz file, without pickle. Raises `Unreadable`, also for an array that
    unpacks to more than `MAX_BYTES`."""
    import numpy as np  # noqa: PLC0415

    _check_regular(path, root)
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{name}.npy")
            if member.file_size > MAX_BYTES:
                raise Unreadable(f"{path.name}: {name} is larger than {MAX_BYTES} bytes")
            data = archive.read(member)
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except KeyError:
        raise Unreadable(f"{path.name} has no {name}") from None
    except (OSError, ValueError, EOFError, MemoryError, RuntimeError, zlib.error, BadZipFile):
        raise Unreadable(f"{path.name} is not a file of arrays") from None


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) > MAX_INTEGER:
        raise ValueError(text)
    return value


_PARSERS: Mapping[type, Callable[[str], Any]] = {int: _integer, float: float, str: str}


def _as_mapping(content: object, path: Path) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise Unreadable(f"{path.name} holds no mapping")
    return content


def _yaml_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" from line {mark.line + 1} on" if mark is not None else ""
