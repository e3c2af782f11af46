"""Prepared-once arrays on disk: made by the first process that needs them, mapped by all others.

A store is a folder `<name>-<12 hex>` in the cache, with one .npy file for each array and a
manifest. It is prepared in a folder beside its place and renamed when whole, so that a killed
preparation leaves nothing that could be taken for a store; a long one leaves what the next goes on
from (see `ArrayWriter`). A second start maps the arrays without reading them: sources and arrays
are recognised by their stamps, and only where these differ by their checksums. A stale store (its
sources changed) and a damaged one are prepared again, with a line that says so.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robustmd.domains.arrays import MARK, ArrayWriter, file_of, make_folder, open_array, share
from robustmd.domains.checksums import array_sha256, content_md5, stamp_of
from robustmd.domains.examples import Examples
from robustmd.errors import Say, UserError
from robustmd.runs.files import write_atomically
from robustmd.runs.lock import held

MANIFEST = "manifest.json"
FORMAT = 1
VERSION = 1  # of all recipes: raise it when one of them writes other arrays
_ARRAY_NAME = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True)
class Recipe:
    """How a store is made.

    name, settings (JSON): together the store's key.
    build: writes the arrays; raises UserError for sources that it cannot use.
    sources: file name → path of the files that `build` reads, compressed by gzip (a name ending in
        .gz) or not; None: they are gone.
    accept: is given the md5s of the sources' contents; raises UserError if they may not be used.
    content: names what else `build` reads; a store that was made from another is out of date.
    """

    name: str
    settings: Mapping[str, object]
    build: Callable[[ArrayWriter], None]
    sources: Mapping[str, Path] | None = field(default_factory=dict)
    accept: Callable[[Mapping[str, str]], None] = lambda md5s: None
    content: str = ""

    @property
    def key(self) -> str:
        """The store's folder name."""
        return f"{self.name}-{_hash([self.name, VERSION, self.settings])}"


@dataclass(frozen=True)
class Store:
    """arrays: read-only memory maps; checksums: their `array_sha256`; md5s: of the sources."""

    arrays: Mapping[str, np.ndarray]
    checksums: Mapping[str, str]
    md5s: Mapping[str, str]

    def examples(self, name: str) -> Examples:
        """What `ArrayWriter.add_examples` wrote under that name."""
        return Examples(self.arrays[f"{name}_images"], self.arrays[f"{name}_labels"])


class NotCurrentError(Exception):
    """Why the store on disk cannot be used as it is; an empty reason if there is none yet."""


def find_store(cache: Path, recipe: Recipe) -> Store | None:
    """The store if it is there, whole and current. Raises UserError if a source cannot be read."""
    try:
        return _open(cache / recipe.key, recipe)
    except NotCurrentError:
        return None


def open_store(cache: Path, recipe: Recipe, say: Say) -> Store:
    """Open the store of `recipe` in `cache`, preparing it first if need be.

    Raises UserError if the sources cannot be read or not be used, or the cache not be written.
    """
    store = find_store(cache, recipe)  # who may only read needs no lock
    if store is None:
        try:
            make_folder(cache)
            lock = cache.resolve() / f"{recipe.key}.lock"
            with held(lock, say, waiting_for=f"preparing {recipe.name}"):
                store = _open_or_prepare(cache / recipe.key, recipe, say)
        except OSError as error:
            raise UserError(
                f"cannot keep the prepared {recipe.name} data in {cache} "
                f"({error.strerror or error}); free space there or make it writable, or choose "
                "another folder with paths.cache=DIR"
            ) from error
    recipe.accept(store.md5s)
    return store


def read_through(folder: Path) -> None:
    """Read all arrays of the store in `folder`. Raises UserError for one that is not what it was
    prepared as."""
    try:
        for name, state in _Manifest.read(folder).arrays.items():
            if _array_checksum(file_of(folder, name)) != state.checksum:
                raise NotCurrentError(f"is damaged ({name}.npy is not what was prepared)")
    except (NotCurrentError, OSError, ValueError, EOFError) as error:
        raise UserError(f"{folder}: {error}; remove it to have it prepared again") from error


class _State(NamedTuple):
    """A file as it was when last seen whole: its stamp, and the checksum of its content."""

    size: int
    mtime_ns: int
    ctime_ns: int
    checksum: str

    def now(self, path: Path, checksum: Callable[[Path], str]) -> _State:
        """The file's present state. Raises OSError, ValueError if its content is another."""
        stamp = stamp_of(path)
        if stamp != self[:3] and checksum(path) != self.checksum:
            raise ValueError("its content has changed")
        return _State(*stamp, self.checksum)


@dataclass(frozen=True)
class _Manifest:
    """What a store was made from, and what belongs in it; written last. Sources go by file name,
    arrays, each in <name>.npy, by theirs."""

    key: str
    content: str
    sources: Mapping[str, _State]
    arrays: Mapping[str, _State]

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        of_files = {
            part: {name: state._asdict() for name, state in states.items()}
            for part, states in (("sources", self.sources), ("arrays", self.arrays))
        }
        content = {"format": FORMAT, "key": self.key, "content": self.content, **of_files}
        text = json.dumps(content, indent=1) + "\n"
        write_atomically(folder / MANIFEST, lambda stream: stream.write(text.encode()))

    @classmethod
    def read(cls, folder: Path) -> _Manifest:
        """Raises NotCurrentError."""
        try:
            content = json.loads((folder / MANIFEST).read_bytes())
            sources, arrays = (
                {name: _State(**state) for name, state in content[part].items()}
                for part in ("sources", "arrays")
            )
            # Array names become file names: nothing outside the folder is reached through them.
            is_ours = content["format"] == FORMAT and content["key"] == folder.name
            if not is_ours or not all(map(_ARRAY_NAME.fullmatch, arrays)):
                raise ValueError("of another store")
            return cls(folder.name, content.get("content", ""), sources, arrays)
        except FileNotFoundError as error:
            raise NotCurrentError("is damaged (no manifest)" if folder.exists() else "") from error
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
            raise NotCurrentError(f"is damaged (manifest: {e})") from e


def _open(folder: Path, recipe: Recipe) -> Store:
    """Map the arrays of the store in `folder`. Where a stamp differs and the checksum does not, the
    manifest is given the new stamp, if it can be written. Raises NotCurrentError, and UserError if
    a source cannot be read."""
    known = _Manifest.read(folder)
    if known.content != recipe.content:
        raise NotCurrentError("is out of date (what it was made from has changed)")
    if recipe.sources is not None and set(known.sources) != set(recipe.sources):
        raise NotCurrentError("is made of other files")
    arrays, states, sources = {}, {}, dict(known.sources)
    for name, state in known.arrays.items():
        path = file_of(folder, name)
        try:
            arrays[name] = open_array(path)
            states[name] = state.now(path, _array_checksum)
        except (OSError, ValueError, EOFError) as error:
            raise NotCurrentError(f"is damaged ({path.name}: {error})") from error
    for name, path in (recipe.sources or {}).items():
        try:
            sources[name] = sources[name].now(path, content_md5)
        except ValueError as error:
            raise NotCurrentError(f"is out of date ({path} has changed)") from error
    found = _Manifest(known.key, known.content, sources, states)
    if found != known:
        with suppress(OSError):  # then the next start compares checksums as well
            found.write(folder)
    return Store(arrays, _checksums(states), _checksums(sources))


def _open_or_prepare(folder: Path, recipe: Recipe, say: Say) -> Store:
    """The work under the lock. Raises OSError for the cache, UserError for the sources."""
    try:
        return _open(folder, recipe)  # another may have made it meanwhile
    except NotCurrentError as error:
        reason = str(error)
    of_files = (recipe.sources or {}).items()
    sources = {name: _State(*stamp_of(path), content_md5(path)) for name, path in of_files}
    recipe.accept(_checksums(sources))
    if reason:
        say(f"the prepared {recipe.name} data in {folder} {reason}; preparing it again")
    else:
        say(f"preparing {recipe.name} (once; kept in {folder})")
    _prepare(folder, recipe, sources)
    return _open(folder, recipe)


def _prepare(folder: Path, recipe: Recipe, sources: Mapping[str, _State]) -> None:
    """Build in a folder beside the store's place, then put it there. Needs the store's lock."""
    of = _hash([recipe.content, _checksums(sources)])
    partial = folder.with_name(f".{folder.name}.{of}")  # of other sources: nothing to go on from
    _remove_leftovers(folder, partial)
    try:
        partial.mkdir(exist_ok=True)
        share(partial)
        writer = ArrayWriter(partial)
        recipe.build(writer)
        for name, path in (recipe.sources or {}).items():  # what was hashed must be what was read
            if stamp_of(path) != sources[name][:3]:
                raise UserError(f"{path} changed while it was read; run again when it is complete")
        writer.remove_marks()
        arrays = {
            path.stem: _State(*stamp_of(path), _array_checksum(path))
            for path in partial.glob("*.npy")
        }
        _Manifest(folder.name, recipe.content, sources, arrays).write(partial)
        if folder.exists():
            folder.rename(folder.with_name(f".{folder.name}.replaced"))
        partial.rename(folder)
    finally:
        can_go_on = any(partial.glob(f"*{MARK}"))
        _remove_leftovers(folder, partial if can_go_on else None)


def _remove_leftovers(folder: Path, kept: Path | None) -> None:
    """What preparations have left beside the store's place."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        if leftover != kept:
            shutil.rmtree(leftover, ignore_errors=True)


def _array_checksum(path: Path) -> str:
    return array_sha256(open_array(path))


def _checksums(states: Mapping[str, _State]) -> dict[str, str]:
    return {name: state.checksum for name, state in states.items()}


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
