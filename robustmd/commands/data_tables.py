"""What `robustmd data` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from robustmd.config.keys import described
from robustmd.domains.domain import SPLITS, Domain, DomainSet
from robustmd.domains.duplicates import Shared
from robustmd.registry import DATA

MOST_PAIRS = 20


def list_data_sets(data_dir: Path, console: Console) -> None:
    """Every option of the data group: how it is typed, what it is, what is at hand of it."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in ("data set", "what it is", "to fetch", "at hand", "licence"):
        table.add_column(column, overflow="fold")
    for name in DATA.offered:
        schema = DATA[name]
        what = described(schema).partition("\n")[0]
        size, state, licence = "–", "–", "–"
        if (known := schema().at_hand(data_dir)) is not None:
            licence, count, there = known
            size = decimal(count) if count else "–"
            parts = (f"{part} {'there' if there[part] else 'missing'}" for part in there)
            state = ", ".join(parts) or "in the package"
        table.add_row(name, what, size, state, licence)
    console.print(table)
    line = f"Files are looked for in {data_dir} (paths.data=DIR or ROBUSTMD_DATA: elsewhere)."
    console.print(f"\n{line}", soft_wrap=True)
    console.print("robustmd data NAME fetches or finds one, verifies, prepares and shows it.")


def print_data_set(
    data: DomainSet, found: Sequence[Shared], unseen: Sequence[str], console: Console
) -> None:
    """A row for every domain, then duplicates, fingerprint and where the prepared arrays lie."""
    first = data.domains[0].train
    inputs = first.size_in_words
    if not first.are_features:
        height, width = data.image_size
        inputs = f"images of {width}×{height} RGB"
    console.print(
        f"\n{data.name}: {len(data)} domains, {data.labels_in_words}, {inputs}, "
        f"{decimal(_bytes(data))} prepared",
        soft_wrap=True,
    )
    console.print(_domains(data, unseen))
    for line in (*_expanded(data), *_duplicates(found)):
        console.print(line, soft_wrap=True)
    console.print(f"Fingerprint: {data.fingerprint}", soft_wrap=True)
    for folder in prepared_folders(data):
        console.print(f"Prepared in: {folder}", soft_wrap=True)


def prepared_folders(data: DomainSet) -> list[Path]:
    """The folders of the prepared stores that the domains' images lie in, each once."""
    folders = []
    for domain in data:
        base: object = domain.train.images
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        if isinstance(base, np.memmap) and base.filename:
            folders.append(Path(base.filename).parent)
    return list(dict.fromkeys(folders))


def _domains(data: DomainSet, unseen: Sequence[str]) -> Table:
    splits = [split for split in SPLITS if any(split in domain.splits for domain in data)]
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("domain", overflow="fold", min_width=8)
    for column in (*splits, "classes", "bytes"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("checksum", "licence", "source"):
        table.add_column(column, overflow="fold")
    for domain, classes in zip(data, data.class_masks().sum(axis=1), strict=True):
        examples = domain.splits
        table.add_row(
            f"{domain.name} (unseen)" if domain.name in unseen else domain.name,
            *(f"{len(examples[s]):,}" if s in examples else "–" for s in splits),
            str(classes),
            decimal(_bytes([domain])),
            domain.verified or "not checked",
            domain.licence or "not known",
            domain.source,
        )
    return table


def _bytes(domains: Iterable[Domain]) -> int:
    """Of the prepared arrays of all domains; what several share counts once."""
    examples = [e for domain in domains for e in domain.splits.values()]
    arrays = [array for e in examples for array in (e.images, e.labels)]
    return sum({a.__array_interface__["data"][0]: a.nbytes for a in arrays}.values())


def _expanded(data: DomainSet) -> Iterator[str]:
    """Where a split counts its images more than once."""
    for domain in data:
        for split, examples in domain.splits.items():
            variants = len(examples.views.variants)
            if variants > 1:
                count = f"{examples.stored:,} images in {variants} variants each"
                yield f"{domain.name} {split}: {count}"


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
