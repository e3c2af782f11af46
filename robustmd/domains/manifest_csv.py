"""data.manifest: a CSV file with the columns path, domain, label and, if wanted, split."""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from robustmd.domains.checksums import NO_FILE, stamp_of
from robustmd.domains.listing import (
    SPLITS,
    Listed,
    Listing,
    checked_name,
    clean,
    few,
    shown,
)
from robustmd.errors import UserError

NEEDED = ("path", "domain", "label")
COLUMNS = (*NEEDED, "split")
Row = tuple[int, Mapping[str, str]]  # line of the file, value by column


def list_manifest(manifest: Path, *, outside: bool) -> Listing:
    """The image files that `manifest` names, relative to its own folder.

    outside: paths may lead out of that folder.
    Raises UserError: no such file, not such a table, a wrong value, files missing.
    """
    where = f"data.manifest={shown(manifest)}"
    rows = list(_rows(manifest, where))
    _check_values(rows, where)
    _check_paths(rows, where, outside)
    folder, files, missing = manifest.parent, [], []
    for line, row in rows:
        stamp = stamp_of(folder / row["path"])
        if stamp == NO_FILE:
            missing.append(f"{shown(row['path'])} (line {line})")
            continue
        domain = checked_name("domain", row["domain"], f"{where}, line {line}")
        label = checked_name("label", row["label"], f"{where}, line {line}")
        files.append(Listed(domain, label, row["split"], row["path"], stamp))
    if missing:
        raise UserError(
            f"{where}: {len(missing):,} of {len(rows):,} files are missing: {few(missing)}; "
            f"paths are relative to {shown(folder)}"
        )
    return Listing.of(manifest, folder, files)


def _rows(manifest: Path, where: str) -> Iterator[Row]:
    """The table's rows, with all columns and without blank space around names."""
    try:
        with manifest.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(header, where)
            for fields in reader:
                if not fields:
                    continue
                if len(fields) != len(header):
                    raise UserError(
                        f"{where}, line {reader.line_num}: {len(fields)} values, "
                        f"the header has {len(header)}"
                    )
                row = {"split": "", **dict(zip(header, fields, strict=True))}
                kept = {name: row[name].strip() for name in ("domain", "label", "split")}
                yield reader.line_num, {"path": row["path"], **kept}
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise UserError(f"{where}: is not UTF-8 text; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise UserError(f"{where}, line {reader.line_num}: is no CSV ({error})") from None


def _check_header(header: list[str], where: str) -> None:
    allowed = f"the first line must be path,domain,label or {','.join(COLUMNS)}, in any order"
    unknown = [name for name in header if name not in COLUMNS]
    if unknown:
        raise UserError(
            f"{where}: unknown column {few([repr(shown(u)) for u in unknown])}; {allowed}"
        )
    missing = [name for name in NEEDED if name not in header]
    if missing or len(set(header)) < len(header):
        fault = f"no column {missing[0]}" if missing else "a column twice"
        raise UserError(f"{where}: {fault}; {allowed}")


def _check_values(rows: list[Row], where: str) -> None:
    empty = [f"line {line}" for line, row in rows if not all(row[name] for name in NEEDED)]
    if empty:
        raise UserError(
            f"{where}: {len(empty):,} row(s) without a path, domain or label: {few(empty)}"
        )
    wrong = [
        f"{shown(row['split'])!r} (line {line})"
        for line, row in rows
        if row["split"] not in (*SPLITS, "")
    ]
    if wrong:
        raise UserError(
            f"{where}: {len(wrong):,} unknown split(s): {few(wrong)}; "
            f"allowed are {', '.join(SPLITS)}, or none at all to have it drawn"
        )


def _check_paths(rows: list[Row], where: str, outside: bool) -> None:
    """A manifest from elsewhere reads nothing outside its folder; no image counts twice."""
    leaving = [f"{shown(r['path'])} (line {n})" for n, r in rows if _leaves(r["path"])]
    if leaving and not outside:
        raise UserError(
            f"{where}: {len(leaving):,} path(s) lead out of its folder: {few(leaving)}; "
            "data.outside=true allows it"
        )
    first: dict[tuple[str, str], int] = {}
    repeated = []
    for line, row in rows:
        key = clean(row["domain"]), posixpath.normpath(row["path"])
        if first.setdefault(key, line) != line:
            repeated.append(f"{shown(row['path'])} (lines {first[key]} and {line})")
    if repeated:
        raise UserError(
            f"{where}: {len(repeated):,} file(s) listed twice for one domain: {few(repeated)}"
        )


def _leaves(path: str) -> bool:
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    return Path(path).is_absolute() or parts[0] == ".."
