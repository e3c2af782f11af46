"""data.manifest: a CSV file with the columns path, domain, label and, if wanted, split."""

from __future__ import annotations

import csv
import posixpath
from pathlib import Path

from robustmd.domains.checksums import NO_FILE, stamp_of
from robustmd.domains.examples import SPLITS
from robustmd.domains.listing import Listed, Listing, checked_name, clean, few, shown
from robustmd.errors import UserError

NEEDED = ("path", "domain", "label")
COLUMNS = (*NEEDED, "split")
Row = dict[str, str]  # value by column


def list_manifest(manifest: Path, *, outside: bool) -> Listing:
    """The image files that `manifest` names, relative to its own folder.

    outside: paths may lead out of that folder.
    Raises UserError: no such file, not such a table, a wrong value, files missing.
    """
    where = f"data.manifest={shown(manifest)}"
    rows = _rows(manifest, where)

    def refuse(wrong: list[str], what: str) -> None:
        if wrong:
            count = f"{len(wrong):,} of {len(rows):,} rows"
            raise UserError(f"{where}: {count} {what.format(few(wrong))}")

    empty = [f"line {line}" for line, row in rows.items() if not all(row[n] for n in NEEDED)]
    refuse(empty, "have no path, domain or label: {}")
    wrong = [
        f"{shown(row['split'])!r} (line {line})"
        for line, row in rows.items()
        if row["split"] not in (*SPLITS, "")
    ]
    refuse(wrong, f"have an unknown split: {{}}; allowed are {', '.join(SPLITS)}, or none at all")
    paths = {line: f"{shown(row['path'])} (line {line})" for line, row in rows.items()}
    leaving = [paths[line] for line, row in rows.items() if _leaves(row["path"])]
    if not outside:
        refuse(leaving, "lead out of its folder: {}; data.outside=true allows it")
    first: dict[tuple[str, str], int] = {}
    for line, row in rows.items():
        first.setdefault((clean(row["domain"]), posixpath.normpath(row["path"])), line)
    kept = set(first.values())
    repeated = [paths[line] for line in rows if line not in kept]
    refuse(repeated, "name a file that the same domain has already: {}")
    stamps = {line: stamp_of(manifest.parent / row["path"]) for line, row in rows.items()}
    missing = [paths[line] for line, stamp in stamps.items() if stamp == NO_FILE]
    refuse(missing, f"name no file: {{}}; paths are relative to {shown(manifest.parent)}")
    files = [
        Listed(
            checked_name("domain", row["domain"], f"{where}, line {line}"),
            checked_name("label", row["label"], f"{where}, line {line}"),
            row["split"],
            row["path"],
            stamps[line],
        )
        for line, row in rows.items()
    ]
    return Listing(manifest, manifest.parent, files)


def _rows(manifest: Path, where: str) -> dict[int, Row]:
    """Line → row, with all columns and without blank space around names. Raises UserError."""
    rows = {}
    try:
        with manifest.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(header, where)
            for fields in filter(None, reader):
                if len(fields) != len(header):
                    raise UserError(
                        f"{where}, line {reader.line_num}: {len(fields)} values, "
                        f"the header has {len(header)}"
                    )
                row = {"split": "", **dict(zip(header, fields, strict=True))}
                stripped = {name: value.strip() for name, value in row.items() if name != "path"}
                rows[reader.line_num] = {"path": row["path"], **stripped}
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise UserError(f"{where}: is not UTF-8 text; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise UserError(f"{where}, line {reader.line_num}: is no CSV ({error})") from None
    return rows


def _check_header(header: list[str], where: str) -> None:
    allowed = f"the first line must be path,domain,label or {','.join(COLUMNS)}, in any order"
    unknown = [repr(shown(name)) for name in header if name not in COLUMNS]
    missing = [name for name in NEEDED if name not in header]
    if unknown:
        raise UserError(f"{where}: unknown column {few(unknown)}; {allowed}")
    if missing or len(set(header)) < len(header):
        fault = f"no column {missing[0]}" if missing else "a column twice"
        raise UserError(f"{where}: {fault}; {allowed}")


def _leaves(path: str) -> bool:
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    return Path(path).is_absolute() or parts[0] == ".."
