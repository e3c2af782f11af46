"""data.manifest: a CSV file with the columns path, domain, label and, if wanted, split.

With data.group_by a domain is not a value of the column `domain`, but of several columns together:
"landbird+water" where `label` is landbird and `place` is water. Other columns are left alone.
"""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Sequence
from pathlib import Path

from robustmd.domains.checksums import NO_FILE, stamp_of
from robustmd.domains.examples import SPLITS
from robustmd.domains.listing import Listed, Listing, checked_name, clean, shown
from robustmd.errors import UserError, listed

Row = dict[str, str]  # value by column


def list_manifest(manifest: Path, group_by: Sequence[str] = (), *, outside: bool) -> Listing:
    """The image files that `manifest` names, relative to its own folder.

    group_by: the columns whose values make a domain; none: `domain`.
    outside: paths may lead out of that folder.
    Raises UserError: no such file, not such a table, a wrong value, files missing.
    """
    where = f"data.manifest={shown(manifest)}"
    groups = list(group_by) or ["domain"]
    needed = list(dict.fromkeys(["path", *groups, "label"]))
    rows, others = _rows(manifest, needed, where)

    def refuse(wrong: list[str], what: str, hint: str = "") -> None:
        if wrong:
            count = f"{len(wrong):,} of {len(rows):,} rows"
            raise UserError(f"{where}: {count} {what}: {listed(wrong)}{hint}")

    empty = [f"line {line}" for line, row in rows.items() if not all(row[n] for n in needed)]
    refuse(empty, f"lack one of {', '.join(needed)}")
    wrong = [
        f"{shown(row['split'])!r} (line {line})"
        for line, row in rows.items()
        if row["split"] not in (*SPLITS, "")
    ]
    refuse(wrong, "have an unknown split", f"; allowed are {', '.join(SPLITS)}, or none at all")
    paths = {line: f"{shown(row['path'])} (line {line})" for line, row in rows.items()}
    leaving = [paths[line] for line, row in rows.items() if _leaves(row["path"])]
    if not outside:
        refuse(leaving, "lead out of its folder", "; data.outside=true allows it")
    values = {line: tuple(clean(row[name]) for name in groups) for line, row in rows.items()}
    domains = {line: "+".join(of_row) for line, of_row in values.items()}
    meant = {domains[line]: values[line] for line in rows}
    unclear = [paths[line] for line in rows if meant[domains[line]] != values[line]]
    refuse(unclear, "make one domain's name of other values than another row", "; rename them")
    first: dict[tuple[str, str], int] = {}
    repeated = [
        paths[line]
        for line, row in rows.items()
        if first.setdefault((domains[line], posixpath.normpath(row["path"])), line) != line
    ]
    refuse(repeated, "name a file that the same domain has already")
    stamps = {line: stamp_of(manifest.parent / row["path"]) for line, row in rows.items()}
    missing = [paths[line] for line, stamp in stamps.items() if stamp == NO_FILE]
    refuse(missing, "name no file", f"; paths are relative to {shown(manifest.parent)}")
    files = [
        Listed(
            checked_name("domain", domains[line], f"{where}, line {line}"),
            checked_name("label", row["label"], f"{where}, line {line}"),
            row["split"],
            row["path"],
            stamps[line],
        )
        for line, row in rows.items()
    ]
    notes = [f"columns of the manifest that are not used: {listed(others)}"] if others else []
    return Listing(manifest, manifest.parent, files, notes)


def _rows(manifest: Path, needed: list[str], where: str) -> tuple[dict[int, Row], list[str]]:
    """Line → row, with the columns that are used and without blank space around names; and the
    names of the other columns. Raises UserError."""
    rows = {}
    try:
        with manifest.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            header = [name.strip() for name in next(reader, [])]
            missing = [name for name in needed if name not in header]
            if missing or len(set(header)) < len(header):
                fault = f"no column {missing[0]}" if missing else "a column twice"
                groups = ", or make domains of others with data.group_by=[label,place]"
                raise UserError(
                    f"{where}: {fault}; the first line must name the columns {', '.join(needed)} "
                    f"and, if wanted, split{groups if 'domain' in missing else ''}"
                )
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
    return rows, [shown(name) for name in header if name not in (*needed, "split")]


def _leaves(path: str) -> bool:
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    return Path(path).is_absolute() or parts[0] == ".."
