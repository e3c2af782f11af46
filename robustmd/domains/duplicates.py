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
import math
import zlib
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robustmd.domains.arrays import make_folder
from robustmd.domains.checksums import array_sha256
from robustmd.domains.domain import SPLITS, Domain, DomainSet, Examples
from robustmd.errors import Say, listed
from robustmd.runs.files import write_atomically

PROBE_BYTES = 1024
DIGEST_BYTES = 16  # of blake2b: no two different images share one by chance
SHOWN = 5  # pairs of splits in a warning
VERSION = 3  # raise it when the same data gives another answer
MANY = 500_000  # images, above which looking takes long enough to be said


class Place(NamedTuple):
    """One split of one domain."""

    domain: str
    split: str

    def __str__(self) -> str:
        return f"{self.domain} {self.split}"


class Shared(NamedTuple):
    """How many different `images` two splits share, or one split, given twice, has more than once;
    how many of second's `examples` show one of them; of how many the labels are `differing`."""

    first: Place
    second: Place
    images: int
    examples: int
    differing: int = 0


def duplicates(
    data: DomainSet,
    cache: Path,
    say: Say = lambda line: None,
    most: float = math.inf,
) -> tuple[Shared, ...] | None:
    """`find_duplicates`, or what it found before in the same splits of the same data; None for more
    than `most` images of which nothing is known from before. A cache that cannot be written only
    means that the next call looks again."""
    path = cache / f"duplicates-{_key(data)}.json"
    kept = _read(path, data)
    count = sum(examples.stored for domain in data for examples in domain.splits.values())
    if kept is not None or count > most:
        return kept
    if count > MANY:
        say(f"looking for duplicates among {count:,} images (once; kept in {cache})")
    found = find_duplicates(data)
    text = json.dumps({"shared": found})
    with contextlib.suppress(OSError):
        make_folder(cache)
        write_atomically(path, lambda stream: stream.write(text.encode()))
    return found


def find_duplicates(data: DomainSet) -> tuple[Shared, ...]:
    """Every pair of splits that share images, in the data set's order, and splits with repeats.

    Domains that are made of the very same stored images, as a domain and its noisy copies are, are
    looked at once: what they share is meant. Domains that images were dealt out to are not such.
    """
    distinct: dict[object, Domain] = {}
    for domain in data:
        images, rows = domain.train.images, domain.train.stored_rows
        same = images.__array_interface__["data"][0], images.shape, rows.tobytes()
        distinct.setdefault(same, domain)
    parts = [(Place(d.name, split), e) for d in distinct.values() for split, e in d.splits.items()]
    probes = [_probes(examples) for _, examples in parts]
    _, which, sharing = np.unique(np.concatenate(probes), return_inverse=True, return_counts=True)
    suspects = np.split(sharing[which] > 1, np.cumsum([len(p) for p in probes])[:-1])
    # The whole image's digest → the parts where it occurs, by number, and its labels in each.
    occurrences: dict[bytes, dict[int, list[bytes]]] = {}
    for number, ((_, examples), suspect) in enumerate(zip(parts, suspects, strict=True)):
        for row in examples.stored_rows[suspect]:
            digest = hashlib.blake2b(examples.images[row], digest_size=DIGEST_BYTES).digest()
            where = occurrences.setdefault(digest, {})
            where.setdefault(number, []).append(examples.labels[row].tobytes())
    in_both: Counter[tuple[int, int]] = Counter()  # by the numbers of two parts
    in_second: Counter[tuple[int, int]] = Counter()
    differing: Counter[tuple[int, int]] = Counter()
    for where in occurrences.values():
        repeated = [(a, a) for a, labels in where.items() if len(labels) > 1]
        for a, b in (*repeated, *combinations(sorted(where), 2)):
            in_both[a, b] += 1
            in_second[a, b] += len(where[b])
            differing[a, b] += len({*where[a], *where[b]}) > 1
    return tuple(
        Shared(parts[a][0], parts[b][0], in_both[a, b], in_second[a, b], differing[a, b])
        for a, b in sorted(in_both)
    )


def _probes(examples: Examples) -> np.ndarray:
    """A checksum of the middle of every image: uint32 [n]."""
    flat = examples.images.reshape(len(examples.images), -1)
    start = max(0, (flat.shape[1] - PROBE_BYTES) // 2)
    middle, rows = flat[:, start : start + PROBE_BYTES], examples.stored_rows
    return np.fromiter((zlib.crc32(middle[row]) for row in rows), np.uint32, len(rows))


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
    return [f"{kind}: {listed(places, SHOWN)}" for kind, places in kinds.items() if places]


def _key(data: DomainSet) -> str:
    """Names the data and its splits: a validation split is not in the fingerprint."""
    digest = hashlib.sha256(f"{VERSION} {data.fingerprint}".encode())
    for domain in data:
        for split, examples in domain.splits.items():
            part = [domain.name, split, array_sha256(examples.stored_rows)]
            digest.update(json.dumps(part).encode())
    return digest.hexdigest()[:16]


def _read(path: Path, data: DomainSet) -> tuple[Shared, ...] | None:
    """The answer in the file; None where there is none, or it is not one of this data set."""
    places = {Place(name, split) for name in data.names for split in SPLITS}
    try:
        found = tuple(
            Shared(Place(*first), Place(*second), *map(int, counts))
            for first, second, *counts in json.loads(path.read_bytes())["shared"]
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if all({s.first, s.second} <= places for s in found) else None
