"""What `robustmd data` prints."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from robustmd.domains.domain import SPLITS, DomainSet
from robustmd.domains.duplicates import Shared
from robustmd.domains.overview import Row, entry, rows, total_bytes

MOST_PAIRS = 20
_HEADER = re.compile(r"# robustmd train (data=.+?)\s{2,}(.+)")


def list_data_sets(data_dir: Path, console: Console) -> None:
    """Every option of the data group: how it is typed, what it is, what is at hand of it."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in ("data set", "what it is", "to fetch", "at hand", "licence"):
        table.add_column(column, overflow="fold")
    for name, what in _described():
        found = entry(name, data_dir)
        size = "–" if found is None or not found.size else _in_words(found.size)
        state, licence = (found.state, found.licence) if found else ("–", "–")
        table.add_row(name, what, size, state, licence)
    console.print(table)
    line = f"Files are looked for in {data_dir} (paths.data=DIR or ROBUSTMD_DATA: elsewhere)."
    console.print(f"\n{line}", soft_wrap=True)
    console.print("robustmd data NAME fetches or finds one, verifies, prepares and shows it.")


def _described() -> Iterator[tuple[str, str]]:
    """(option, what it is), from the first line of each file in conf/data."""
    folder = importlib.resources.files("robustmd.conf") / "data"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            head = _HEADER.match(file.read_text("utf-8"))
            yield file.name.removesuffix(".yaml"), head[2].strip() if head else ""


def print_data_set(
    data: DomainSet, found: Sequence[Shared], unseen: Sequence[str], console: Console
) -> None:
    """A row for every domain, then duplicates, fingerprint and where the prepared arrays lie."""
    height, width = data.image_size
    listed = rows(data)
    console.print(
        f"\n{data.name}: {len(data)} domains, {len(data.classes)} classes, images of "
        f"{width}×{height} RGB, {_in_words(total_bytes(data))} prepared",
        soft_wrap=True,
    )
    console.print(_domains(data, listed, unseen))
    for line in (*_expanded(listed), *_duplicates(found)):
        console.print(line, soft_wrap=True)
    console.print(f"Fingerprint: {data.fingerprint}", soft_wrap=True)
    for folder in dict.fromkeys(row.folder for row in listed):
        if folder is not None:
            console.print(f"Prepared in: {folder}", soft_wrap=True)


def _domains(data: DomainSet, listed: Sequence[Row], unseen: Sequence[str]) -> Table:
    splits = [split for split in SPLITS if any(split in row.examples for row in listed)]
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("domain", overflow="fold", min_width=8)
    for column in (*splits, "classes", "bytes"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("checksum", "licence", "source"):
        table.add_column(column, overflow="fold")
    for row in listed:
        table.add_row(
            f"{row.domain} (unseen)" if row.domain in unseen else row.domain,
            *(f"{row.examples[s]:,}" if s in row.examples else "–" for s in splits),
            str(row.classes),
            _in_words(row.bytes),
            row.verified,
            row.licence or "not known",
            row.source,
        )
    return table


def _expanded(listed: Sequence[Row]) -> Iterator[str]:
    """Where a split counts its images more than once."""
    for row in listed:
        for split, count in row.examples.items():
            if count != row.stored[split]:
                stored = row.stored[split]
                yield f"{row.domain} {split}: {stored:,} images in {count // stored} variants each"


def _duplicates(found: Sequence[Shared]) -> Iterator[str]:
    if not found:
        yield "Exact duplicates: none, within a split, across splits or across domains"
        return
    yield "Exact duplicates (every pixel as prepared):"
    for shared in found[:MOST_PAIRS]:
        if shared.first == shared.second:
            yield (
                f"  within {shared.first}: {shared.images:,} images more than once, "
                f"{shared.examples:,} examples"
            )
        else:
            yield (
                f"  {shared.first} and {shared.second}: {shared.images:,} images in both; "
                f"{shared.examples:,} examples of {shared.second}"
            )
    if len(found) > MOST_PAIRS:
        yield f"  and {len(found) - MOST_PAIRS} more pairs of splits"


def _in_words(count: int) -> str:
    """Bytes in units of a thousand: 430 MB."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
