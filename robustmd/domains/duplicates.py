"""The same image twice: within a split, in two splits of a domain, or in two domains.

Images are the same if all their pixels as prepared are. Two steps, so that most pixels are never
read: of every image a checksum of the 1 KiB in its middle; then, of the images that share theirs
with another, a digest of the whole. Memory: 16 bytes an image, and more only for duplicates. They
are looked for once: the answer is kept in paths.cache, by the data's fingerprint.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from robustmd.domains.checksums import array_sha256
from robustmd.domains.domain import SPLITS, DomainSet, Examples
from robustmd.domains.listing import few
from robustmd.domains.shared_folders import make_folder
from robustmd.runs.files import write_atomically

PROBE_BYTES = 1024
DIGEST_BYTES = 16  # of blake2b: no two different images share one by chance
SHOWN = 5  # pairs of splits in a warning
VERSION = 3  # raise it when the same data gives another answer
MANY = 500_000  # images, above which looking takes long enough to be said


@dataclass(frozen=True)
class Place:
    """One split of one domain."""

    domain: str
    split: str

    def __str__(self) -> str:
        return f"{self.domain} {self.split}"


@dataclass(frozen=True)
class Shared:
    """Images that two splits share, or, where both are one split, that it holds more than once.

    images: how many different ones, ≥ 1
    examples: how many of second's examples show one of them, ≥ images
    differing: of how many of the images the labels differ
    """

    first: Place
    second: Place
    images: int
    examples: int
    differing: int = 0


@dataclass(frozen=True)
class _Part:
    """A split whose images are looked at: rows int64 [n] of images uint8 [N, H·W·3], and their
    labels int64 [n]."""

    place: Place
    images: np.ndarray
    rows: np.ndarray
    labels: np.ndarray


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
    return sum(examples.stored for domain in data for examples in domain.splits.values())


def find_duplicates(data: DomainSet) -> tuple[Shared, ...]:
    """Every pair of splits that share images, in the data set's order, and splits with repeats.

    Domains that are made of the very same stored images, as a domain and its noisy copies are, are
    looked at once: what they share is meant. Domains that images were dealt out to are not such.
    """
    parts = list(_parts(data))
    probes = [_probes(part) for part in parts]
    _, which, sharing = np.unique(np.concatenate(probes), return_inverse=True, return_counts=True)
    suspects = np.split(sharing[which] > 1, np.cumsum([len(p) for p in probes])[:-1])
    # The whole image's digest → the parts where it occurs, by number, and its labels in each.
    occurrences: dict[bytes, dict[int, list[int]]] = {}
    for number, (part, suspect) in enumerate(zip(parts, suspects, strict=True)):
        labels = part.labels[suspect].tolist()
        for row, label in zip(part.rows[suspect], labels, strict=True):
            where = occurrences.setdefault(_digest(part, row), {})
            where.setdefault(number, []).append(label)
    found = [where for where in occurrences.values() if sum(map(len, where.values())) > 1]
    return tuple(_shared([part.place for part in parts], found))


def _parts(data: DomainSet) -> Iterator[_Part]:
    seen = set()
    for domain in data:
        images, rows = domain.train.images, _stored_rows(domain.train)
        which = images.__array_interface__["data"][0], images.shape, rows.tobytes()
        if which in seen:
            continue
        seen.add(which)
        for split, examples in domain.splits.items():
            flat = examples.images.reshape(len(examples.images), -1)
            rows = _stored_rows(examples)
            yield _Part(Place(domain.name, split), flat, rows, examples.labels[rows])


def _stored_rows(examples: Examples) -> np.ndarray:
    """The stored images of a split, each once whatever is made of it: int64 [n]."""
    return np.arange(len(examples.images)) if examples.rows is None else examples.rows


def _probes(part: _Part) -> np.ndarray:
    """A checksum of the middle of every image: uint32 [n]."""
    length = part.images.shape[1]
    start = max(0, (length - PROBE_BYTES) // 2)
    middle = part.images[:, start : start + PROBE_BYTES]
    return np.fromiter((zlib.crc32(middle[r]) for r in part.rows), np.uint32, len(part.rows))


def _digest(part: _Part, row: int) -> bytes:
    return hashlib.blake2b(part.images[row], digest_size=DIGEST_BYTES).digest()


def _shared(places: list[Place], occurrences: Iterable[dict[int, list[int]]]) -> Iterator[Shared]:
    """From the places where each duplicated image occurs, by number, and its labels in each."""
    images: Counter[tuple[int, int]] = Counter()  # of places a <= b: different images in both
    examples: Counter[tuple[int, int]] = Counter()  # examples of b that are in a
    differing: Counter[tuple[int, int]] = Counter()
    for where in occurrences:
        repeated = [(a, a) for a, labels in where.items() if len(labels) > 1]
        for a, b in (*repeated, *combinations(sorted(where), 2)):
            images[a, b] += 1
            examples[a, b] += len(where[b])
            differing[a, b] += len({*where[a], *where[b]}) > 1
    for a, b in sorted(images):
        yield Shared(places[a], places[b], images[a, b], examples[a, b], differing[a, b])


def duplicate_warnings(found: tuple[Shared, ...]) -> list[str]:
    """What a reader of results should be told, a line each: leaks between a domain's splits, and
    images in two domains, and one image under two labels. Repeats within one split under one label
    are no reason for doubt, and left out."""
    leaks = [s for s in found if s.first.domain == s.second.domain and s.first != s.second]
    across = [s for s in found if s.first.domain != s.second.domain]
    torn = [s for s in found if s.differing]
    kinds = {
        "the same image under two labels": [
            f"{s.differing:,} in {s.first}" + f" and {s.second}" * (s.first != s.second)
            for s in torn
        ],
        "the same image in two splits of a domain": [
            f"{s.examples:,} of {s.second} are in {s.first.split}" for s in leaks
        ],
        "the same image in two domains": [
            f"{s.images:,} in {s.first} and {s.second}" for s in across
        ],
    }
    return [f"{kind}: {few(places, SHOWN)}" for kind, places in kinds.items() if places]


def _key(data: DomainSet) -> str:
    """Names the data and its splits: a validation split is not in the fingerprint."""
    digest = hashlib.sha256(f"{VERSION} {data.fingerprint}".encode())
    for domain in data:
        for split, examples in domain.splits.items():
            part = [domain.name, split, array_sha256(_stored_rows(examples))]
            digest.update(json.dumps(part).encode())
    return digest.hexdigest()[:16]


def _write(path: Path, found: tuple[Shared, ...]) -> None:
    make_folder(path.parent)
    text = json.dumps({"version": VERSION, "shared": [astuple(shared) for shared in found]})
    write_atomically(path, lambda stream: stream.write(text.encode()))


def _read(path: Path, data: DomainSet) -> tuple[Shared, ...] | None:
    """The answer in the file; None where there is none, or it is not one of this data set."""
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != VERSION:
            return None
        found = tuple(
            Shared(Place(*first), Place(*second), *map(int, counts))
            for first, second, *counts in content["shared"]
        )
        places = {Place(name, split) for name in data.names for split in SPLITS}
        return found if all({s.first, s.second} <= places for s in found) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
