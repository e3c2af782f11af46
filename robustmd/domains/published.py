"""A domain of published files: found below paths.data, fetched where they are missing, checked by
their md5s, and prepared once."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import IO

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import BLOCK_BYTES
from robustmd.domains.domain import Domain, Examples
from robustmd.domains.fetch import fetch_missing
from robustmd.domains.store import Recipe, Store, find_store, open_store
from robustmd.errors import UserError
from robustmd.registry import DataFacts


@dataclass(frozen=True)
class Published:
    """Where a domain comes from.

    name, title: the domain's, and the data set's own
    md5s: of the files' content, by name; a file that is compressed is called NAME.gz
    folders: where the files are looked for, below paths.data; fetched ones go to the first
    build: writes {train,test}_{images,labels} from the files' paths, by name; raises UserError
    origin, licence: one line each, for people
    """

    name: str
    title: str
    md5s: Mapping[str, str]
    folders: tuple[str, ...]
    build: Callable[[Mapping[str, Path], ArrayWriter], None]
    origin: str
    licence: str

    def found(self, data_dir: Path) -> dict[str, Path]:
        """The files that are there. Raises UserError for a folder that cannot be read."""
        found: dict[str, Path] = {}
        for name, folder, suffix in product(self.md5s, self.folders, ("", ".gz")):
            path = data_dir / folder / f"{name}{suffix}"
            try:
                if name not in found and path.is_file():
                    found[name] = path
            except OSError as error:
                raise UserError(f"cannot read {path} ({error.strerror})") from error
        return found

    def load(self, facts: DataFacts, verify: bool) -> tuple[Domain, Mapping[str, str], list[str]]:
        """The domain, its arrays' checksums, and a note if not all files are the published ones.

        verify: refuse such files. Raises UserError if files are missing and cannot be fetched, are
        refused or cannot be read, and if the cache cannot be written.
        """
        store = self._store(facts, verify)
        strangers = self._strangers(store.md5s)
        notes = []
        if strangers:
            names = ", ".join(strangers)
            notes = [f"{self.title} is read from unofficial files (data.verify=false): {names}"]
        train, test = (
            Examples(store.arrays[f"{split}_images"], store.arrays[f"{split}_labels"])
            for split in ("train", "test")
        )
        verified = "not official" if strangers else "official"
        domain = Domain(self.name, train, test, None, self.origin, self.licence, verified)
        return domain, store.checksums, notes

    def _store(self, facts: DataFacts, verify: bool) -> Store:
        data_dir, cache = facts.folder("data"), facts.folder("cache")
        paths = self.found(data_dir)
        missing = [name for name in self.md5s if name not in paths]
        if missing:
            kept = find_store(cache, self._recipe(None))
            if kept is not None and not self._strangers(kept.md5s):
                facts.say(f"{self.title}: files are gone; using the data prepared from them before")
                return kept
            lacking = f"data=digits lacks {self.title}'s"
            paths |= fetch_missing(lacking, missing, data_dir / self.folders[0], facts.say)
        accept = partial(self._accept, paths, verify)
        return open_store(cache, self._recipe(paths), facts.say, accept)

    def _recipe(self, paths: Mapping[str, Path] | None) -> Recipe:
        return Recipe(
            name=self.name,
            version=1,
            build=partial(self.build, paths or {}),
            settings={"files": list(self.md5s), "size": 32},
            sources=paths,
            md5=content_md5,
        )

    def _strangers(self, md5s: Mapping[str, str]) -> list[str]:
        return [name for name, md5 in md5s.items() if md5 != self.md5s.get(name)]

    def _accept(self, paths: Mapping[str, Path], verify: bool, md5s: Mapping[str, str]) -> None:
        strangers = self._strangers(md5s)
        if verify and strangers:
            name = strangers[0]
            raise UserError(
                f"{len(strangers)} of the {len(md5s)} {self.title} files are not the published "
                f"ones: {paths[name]} has content of md5 {md5s[name]}, published is "
                f"{self.md5s[name]}; delete what is wrong to have it fetched, or use all as it is "
                "with data.verify=false"
            )


def content_md5(path: Path) -> str:
    """Hex md5 of a file's content, decompressed. Raises UserError if it cannot be read."""
    digest = hashlib.md5(usedforsecurity=False)
    with opened(path) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, decompressed. Raises UserError for what cannot be read within the block."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield file  # type: ignore[misc]  # GzipFile reads like a file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise refusal(path, f"its compressed data are broken ({error})") from error
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from error


def refusal(path: Path, fault: str) -> UserError:
    """What is said of a file whose bytes are not what its format asks for."""
    return UserError(
        f"{path} cannot be used: {fault}; delete it to have it fetched again, or put the original "
        "in its place"
    )
