"""Duplicates, looked for once: the answer is kept in paths.cache, by the data's fingerprint."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robustmd.domains.checksums import array_sha256
from robustmd.domains.domain import SPLITS, DomainSet
from robustmd.domains.duplicates import Place, Shared, find_duplicates, stored_rows
from robustmd.domains.lock import make_folder
from robustmd.runs.files import write_atomically

VERSION = 2  # raise it when the same data gives another answer
MAX_BYTES = 1 << 20
MANY = 500_000  # images, above which looking takes long enough to be said


def duplicates(
    data: DomainSet, cache: Path, say: Callable[[str], None] = lambda line: None
) -> tuple[Shared, ...]:
    """`find_duplicates`, or what it found before in the same splits of the same data.

    A cache that cannot be written only means that the next call looks again.
    """
    path = cache / f"duplicates-{_key(data)}.json"
    kept = _read(path, data)
    if kept is not None:
        return kept
    count = image_count(data)
    if count > MANY:
        say(f"looking for duplicates among {count:,} images (once; kept in {cache})")
    found = find_duplicates(data)
    with contextlib.suppress(OSError):
        _write(path, found)
    return found


def known_duplicates(data: DomainSet, cache: Path) -> tuple[Shared, ...] | None:
    """What was found before, or None."""
    return _read(cache / f"duplicates-{_key(data)}.json", data)


def image_count(data: DomainSet) -> int:
    """Stored images in all splits of all domains."""
    return sum(
        len(stored_rows(examples))
        for domain in data
        for split in SPLITS
        if (examples := domain.split(split)) is not None
    )


def _key(data: DomainSet) -> str:
    """Names the data and its splits: a validation split is not in the fingerprint."""
    digest = hashlib.sha256(f"{VERSION} {data.fingerprint}".encode())
    for domain in data:
        for split in SPLITS:
            examples = domain.split(split)
            rows = None if examples is None else examples.rows
            given = examples is not None
            part = [domain.name, split, given, None if rows is None else array_sha256(rows)]
            digest.update(json.dumps(part).encode())
    return digest.hexdigest()[:16]


def _write(path: Path, found: tuple[Shared, ...]) -> None:
    rows = [
        [
            *(s.first.domain, s.first.split, s.second.domain, s.second.split),
            *(s.images, s.examples, s.differing),
        ]
        for s in found
    ]
    make_folder(path.parent)
    text = json.dumps({"version": VERSION, "shared": rows}) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()))


def _read(path: Path, data: DomainSet) -> tuple[Shared, ...] | None:
    """The answer in the file; None where there is none, or it is not one of this data set."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        content = json.loads(raw)
        if len(raw) > MAX_BYTES or content["version"] != VERSION:
            return None
        found = tuple(_entry(row) for row in content["shared"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    places = {Place(name, split) for name in data.names for split in SPLITS}
    return found if all({s.first, s.second} <= places for s in found) else None


def _entry(row: Any) -> Shared:
    """Raises TypeError or ValueError."""
    *names, images, examples, differing = row
    first, split, second, other = names
    sound = all(isinstance(name, str) for name in names)
    counts = ((images, 1), (examples, 1), (differing, 0))
    if not sound or not all(isinstance(n, int) and n >= least for n, least in counts):
        raise ValueError("not an entry")
    return Shared(Place(first, split), Place(second, other), images, examples, differing)
